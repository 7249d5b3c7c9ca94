// SPDX-License-Identifier: Apache-2.0
//
// xml_read.h: XML events from a buffer, with the place of faults. The only file that knows Expat. Entities are refused
// (rule xml-entity), so no input can blow up; a document type without them is read over.
#ifndef PS_IO_XML_READ_H
#define PS_IO_XML_READ_H

#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/status.h"

typedef struct ps_xml_handler {
    // attributes: name, value, name, value, ..., NULL. A code other than PS_OK stops the parse and is returned.
    ps_code (*start)(void *context, const char *element, const char *const *attributes, ps_status *status);
    ps_code (*end)(void *context, const char *element, ps_status *status);
    void *context;
} ps_xml_handler;

// PS_BAD_INPUT with line and column (rules xml-syntax, xml-entity, xml-depth). A handler's own failure is given the
// place when it has none. The parser's memory goes with the arena.
ps_code ps_xml_parse(ps_arena *arena, const char *source, const char *text, int64_t size, const ps_xml_handler *handler,
                     ps_status *status);

const char *ps_xml_library_version(void); // of Expat

#endif
