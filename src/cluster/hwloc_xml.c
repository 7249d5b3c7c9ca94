// SPDX-License-Identifier: Apache-2.0
//
// hwloc_xml.c: the pass in front of hwloc; see hwloc_xml.h.
//
// hwloc 2.9 trusts what it imports: an object without its sets, out of order or out of its parent's set makes it print
// to the terminal or crash. So the invariants that it relies on are checked on the way: sets present and well written,
// each inside its parent's, siblings disjoint and ascending, processors single, devices with addresses. O(file *
// depth).
#include "cluster/hwloc_xml.h"

#include <ctype.h>
#include <string.h>

#include "io/xml_read.h"

// Far above any node: the largest known files have some ten thousand elements.
#define MAX_OBJECTS 200000
#define MAX_DEPTH 256 // that of ps_xml_parse()
#define SET_WORDS 256 // of 32 bits: 8192 processors

typedef struct cpu_set {
    int32_t words; // in use
    uint32_t word[SET_WORDS];
} cpu_set;

typedef enum object_class { OTHER, NORMAL, PROCESSOR, MEMORY, DEVICE } object_class;

typedef struct frame {
    object_class kind;
    cpu_set set;        // of a NORMAL, PROCESSOR or MEMORY object, processors that are off included
    cpu_set taken;      // by its NORMAL and PROCESSOR children so far
    int32_t last_first; // lowest member of the child before, -1: none
} frame;

typedef struct check {
    bool is_v1;
    int64_t elements;
    int64_t processors;
    int64_t memories;
    int64_t roots;
    int32_t depth;
    frame *frame; // [MAX_DEPTH + 1]
} check;

static const char *attribute(const char *const *attributes, const char *name)
{
    for (int i = 0; attributes[i]; i += 2)
        if (strcmp(attributes[i], name) == 0)
            return attributes[i + 1];
    return NULL;
}

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

static object_class class_of(const char *type, bool is_v1)
{
    static const char *const normal[] = {"Machine", "System",   "Package",  "Socket",   "Die",     "Core",
                                         "Group",   "Cache",    "L1Cache",  "L2Cache",  "L3Cache", "L4Cache",
                                         "L5Cache", "L1iCache", "L2iCache", "L3iCache", NULL};
    static const char *const devices[] = {"Bridge", "PCIDev", "OSDev", "Misc", NULL};

    if (strcmp(type, "PU") == 0)
        return PROCESSOR;
    if (strcmp(type, "NUMANode") == 0)
        return is_v1 ? NORMAL : MEMORY;
    if (strcmp(type, "MemCache") == 0)
        return MEMORY;
    return is_one_of(type, normal) ? NORMAL : is_one_of(type, devices) ? DEVICE : OTHER;
}

// "0x00000003,,0x0000ffff": words of 32 bits, the highest first, an empty one is 0.
static bool parse_set(const char *text, cpu_set *set)
{
    int32_t words = 1;

    for (const char *c = text; *c; c++)
        words += *c == ',';
    if (!*text || words > SET_WORDS)
        return false;
    set->words = words;
    for (int32_t i = words - 1; i >= 0; i--) {
        size_t digits = 0;
        uint32_t value = 0;
        if (text[0] == '0' && text[1] == 'x') {
            for (text += 2; isxdigit((unsigned char)*text); text++, digits++)
                value = value * 16 + (uint32_t)(isdigit((unsigned char)*text) ? *text - '0' : (*text | 32) - 'a' + 10);
            if (digits < 1 || digits > 8)
                return false;
        }
        set->word[i] = value;
        if (*text != (i > 0 ? ',' : '\0'))
            return false;
        text++;
    }
    return true;
}

static uint32_t word_of(const cpu_set *set, int32_t i)
{
    return i < set->words ? set->word[i] : 0;
}

static bool is_inside(const cpu_set *inner, const cpu_set *outer)
{
    for (int32_t i = 0; i < inner->words; i++)
        if (inner->word[i] & ~word_of(outer, i))
            return false;
    return true;
}

static int32_t count_bits(const cpu_set *set)
{
    int32_t count = 0;
    for (int32_t i = 0; i < set->words; i++)
        for (uint32_t w = set->word[i]; w; w &= w - 1)
            count++;
    return count;
}

static int32_t first_bit(const cpu_set *set)
{
    for (int32_t i = 0; i < set->words; i++)
        for (int32_t bit = 0; bit < 32; bit++)
            if (set->word[i] >> bit & 1)
                return 32 * i + bit;
    return -1;
}

// Adds `set` to `taken`; false when they share a member.
static bool take(cpu_set *taken, const cpu_set *set)
{
    for (int32_t i = 0; i < set->words; i++)
        if (set->word[i] & word_of(taken, i))
            return false;
    for (int32_t i = 0; i < set->words; i++) {
        if (i >= taken->words)
            taken->word[taken->words++] = 0;
        taken->word[i] |= set->word[i];
    }
    return true;
}

static ps_code refuse(ps_status *status, const char *type, const char *why)
{
    ps_fail(status, PS_BAD_INPUT, "hwloc-object", "the %.40s %s", type, why);
    return ps_fail_hint(status, "write the file anew on the machine itself with: lstopo --of xml node.xml");
}

static ps_code check_sets(check *c, const char *type, const char *const *attributes, frame *self, ps_status *status)
{
    static const char *const optional[] = {"online_cpuset", "allowed_cpuset", "allowed_nodeset", NULL};
    static const char *const needed[] = {"nodeset", "complete_nodeset", NULL};
    const frame *parent = &c->frame[c->depth - 1];
    const char *complete = attribute(attributes, "complete_cpuset");
    const char *cpuset = attribute(attributes, "cpuset");
    cpu_set *other = &self->taken;

    if (!complete || !cpuset || !parse_set(complete, &self->set) || !parse_set(cpuset, other))
        return refuse(status, type, "has no well-formed cpuset and complete_cpuset");
    if (!is_inside(other, &self->set))
        return refuse(status, type, "has a cpuset outside its complete_cpuset");
    if (self->kind == PROCESSOR && count_bits(other) == 1)
        c->processors++; // one that is off has its bit in complete_cpuset alone
    if (parent->kind != OTHER && !is_inside(&self->set, &parent->set))
        return refuse(status, type, "has processors outside those of the object around it");
    for (int i = 0; needed[i]; i++) {
        const char *text = attribute(attributes, needed[i]);
        if (!text || !parse_set(text, other))
            return refuse(status, type, "has no well-formed nodeset and complete_nodeset");
        if (strcmp(type, "NUMANode") == 0 && count_bits(other) != 1)
            return refuse(status, type, "is more or less than one node");
    }
    for (int i = 0; optional[i]; i++) {
        const char *text = attribute(attributes, optional[i]);
        if (text && !parse_set(text, other))
            return refuse(status, type, "has a malformed set");
        if (text && c->frame[c->depth - 1].kind == OTHER && count_bits(other) == 0)
            return refuse(status, type, "allows no processor or memory");
    }
    return PS_OK;
}

static ps_code check_cpu_object(check *c, const char *type, const char *const *attributes, ps_status *status)
{
    frame *parent = &c->frame[c->depth - 1];
    frame *self = &c->frame[c->depth];
    bool is_node = strcmp(type, "NUMANode") == 0;

    PS_TRY(check_sets(c, type, attributes, self, status));
    self->taken.words = 0;
    c->memories += is_node;
    if (self->kind == MEMORY)
        return parent->kind == NORMAL || parent->kind == MEMORY ? PS_OK : refuse(status, type, "is in the wrong place");

    if (parent->kind != NORMAL && parent->kind != OTHER)
        return refuse(status, type, "is in the wrong place");
    if (parent->kind == OTHER && (c->roots++ > 0 || strcmp(type, "Machine") != 0))
        return refuse(status, type, "is not the one Machine that a file describes");
    int32_t first = first_bit(&self->set);
    if (first < 0) // memory without processors, which hwloc 1 puts among the others
        return is_node ? PS_OK : refuse(status, type, "has no processor");
    if (first <= parent->last_first || !take(&parent->taken, &self->set))
        return refuse(status, type, "shares processors with the one before it, or is out of order");
    parent->last_first = first;
    if (self->kind == PROCESSOR && count_bits(&self->set) != 1)
        return refuse(status, type, "is more than one processor");
    return PS_OK;
}

// "0000:04:00.0"
static bool is_bus_id(const char *text)
{
    static const char pattern[] = "xxxx:xx:xx.x";

    if (!text || strlen(text) != sizeof pattern - 1)
        return false;
    for (size_t i = 0; pattern[i]; i++)
        if (pattern[i] == 'x' ? !isxdigit((unsigned char)text[i]) : text[i] != pattern[i])
            return false;
    return true;
}

static ps_code check_device(const check *c, const char *type, const char *const *attributes, ps_status *status)
{
    const char *bridge = attribute(attributes, "bridge_type");

    if (c->frame[c->depth - 1].kind == OTHER)
        return refuse(status, type, "is in the wrong place");
    if (strcmp(type, "PCIDev") == 0 || (bridge && bridge[0] == '1'))
        if (!is_bus_id(attribute(attributes, "pci_busid")) || !attribute(attributes, "pci_type"))
            return refuse(status, type, "has no PCI address and type");
    if (strcmp(type, "Bridge") == 0 && (!bridge || !attribute(attributes, "bridge_pci")))
        return refuse(status, type, "has no bridge_type and bridge_pci");
    if (strcmp(type, "OSDev") == 0 && !attribute(attributes, "osdev_type"))
        return refuse(status, type, "has no osdev_type");
    return PS_OK;
}

static ps_code check_root(check *c, const char *element, const char *const *attributes, ps_status *status)
{
    const char *version = attribute(attributes, "version");

    if (strcmp(element, "topology") != 0 && strcmp(element, "root") != 0)
        return ps_fail(status, PS_BAD_INPUT, "cluster-format", "<%.40s> is not the root of hwloc XML", element);
    c->is_v1 = !version || strcmp(version, "1") == 0 || strncmp(version, "1.", 2) == 0; // hwloc 1 states none
    if (c->is_v1 || strncmp(version, "2.", 2) == 0)
        return PS_OK;
    ps_fail(status, PS_BAD_INPUT, "hwloc-version", "hwloc XML of version \"%.32s\"; versions 1 and 2 can be read",
            version);
    return ps_fail_hint(status, "write it on that machine with: lstopo --of xml --export-xml-flags 2 node.xml");
}

// hwloc gives up half way, and loses the memory of what it read so far, where one of these is missing.
static ps_code check_other(const char *element, const char *const *attributes, ps_status *status)
{
    static const struct {
        const char *element;
        const char *needed[5];
    } elements[] = {
        {"info", {"name", "value"}},
        {"distances", {"nbobjs", "relative_depth", "latency_base"}},
        {"latency", {"value"}},
        {"distances2", {"type", "nbobjs", "kind", "indexing"}},
        {"distances2hetero", {"nbobjs", "kind"}},
        {"indexes", {"length"}},
        {"u64values", {"length"}},
    };

    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        if (strcmp(element, elements[i].element) == 0)
            for (int k = 0; elements[i].needed[k]; k++)
                if (!attribute(attributes, elements[i].needed[k]))
                    return refuse(status, element, "lacks an attribute that it always has");
    return PS_OK;
}

static ps_code on_start(void *context, const char *element, const char *const *attributes, ps_status *status)
{
    check *c = context;
    frame *self = &c->frame[++c->depth];

    self->kind = OTHER;
    self->taken.words = 0;
    self->last_first = -1;
    if (++c->elements == 1)
        return check_root(c, element, attributes, status);
    if (c->elements > MAX_OBJECTS)
        return ps_fail(status, PS_BAD_INPUT, "hwloc-size", "more than %d elements", MAX_OBJECTS);
    if (strcmp(element, "object") != 0)
        return check_other(element, attributes, status);

    const char *type = attribute(attributes, "type");
    if (!type)
        return refuse(status, "object", "has no type");
    self->kind = class_of(type, c->is_v1);
    if (self->kind == OTHER)
        return refuse(status, type, "is no type of object that hwloc 1 or 2 writes");
    return self->kind == DEVICE ? check_device(c, type, attributes, status)
                                : check_cpu_object(c, type, attributes, status);
}

static ps_code on_end(void *context, const char *element, ps_status *status)
{
    check *c = context;

    c->depth--;
    if (c->depth > 0 || (c->processors > 0 && c->memories > 0))
        return PS_OK;
    return refuse(status, element, c->processors ? "has no NUMANode" : "has no PU");
}

ps_code ps_hwloc_xml_check(ps_arena *arena, const char *source, const char *text, int64_t size, ps_status *status)
{
    check c = {.frame = ps_new(arena, frame, MAX_DEPTH + 1)};
    ps_xml_handler handler = {.start = on_start, .end = on_end, .context = &c};

    return ps_xml_parse(arena, source, text, size, &handler, status);
}

bool ps_xml_root_name(const char *text, int64_t size, char name[64])
{
    for (int64_t i = 0; i + 1 < size; i++) {
        if (text[i] != '<' || !(isalpha((unsigned char)text[i + 1]) || text[i + 1] == '_')) {
            // A comment may hold tags.
            const char *end = size - i > 4 && memcmp(text + i, "<!--", 4) == 0 ? strstr(text + i, "-->") : NULL;
            if (end)
                i = end - text;
            continue;
        }
        size_t length = 0;
        while (length < 63 && i + 1 < size && (isalnum((unsigned char)text[i + 1]) || text[i + 1] == '_'))
            name[length++] = text[++i];
        name[length] = '\0';
        return true;
    }
    return false;
}
