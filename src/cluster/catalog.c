// SPDX-License-Identifier: Apache-2.0
//
// catalog.c: reads configs/gpus.json, which is compiled in, and looks up its entries.
#include "cluster/catalog.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "cluster/gpu_json.h"
#include "io/builtin.h"

static const char *const gpu_keys[] = {"name",
                                       "vendor",
                                       "architecture",
                                       "source",
                                       "aliases",
                                       "match",
                                       "except",
                                       "pci_ids",
                                       "memory_nominal",
                                       "memory_usable",
                                       "memory_bandwidth",
                                       "peak_tflops",
                                       "fabric",
                                       "fabric_bandwidth",
                                       "pcie_bandwidth",
                                       "multiprocessors",
                                       "power_watts",
                                       "usd_per_hour",
                                       "intra",
                                       "nic",
                                       "gemm_efficiency",
                                       "fp8_gemm_efficiency",
                                       "fp4_gemm_efficiency",
                                       "grouped_gemm_efficiency",
                                       "batched_gemm_efficiency",
                                       "attention_efficiency",
                                       "attention_backward_efficiency",
                                       "memory_efficiency",
                                       "kernel_time",
                                       NULL};

static ps_code list_links(ps_arena *arena, ps_catalog *catalog, ps_status *status)
{
    ps_json links = ps_json_member(catalog->root, "links");
    ps_json nics = ps_json_member(catalog->root, "nics");
    int64_t count = ps_json_count(links) + ps_json_count(nics);

    catalog->link = ps_new(arena, ps_json, count);
    catalog->link_name = ps_new(arena, const char *, count);
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1)
            catalog->first_nic = catalog->num_links;
        for (ps_json e = ps_json_first(pass ? nics : links); e.node; e = ps_json_next(e)) {
            catalog->link[catalog->num_links] = e;
            PS_TRY(ps_json_get_string(e, "name", PS_REQUIRED, &catalog->link_name[catalog->num_links], status));
            catalog->num_links++;
        }
    }
    return PS_OK;
}

static void add_word(ps_catalog *catalog, const char *text, int32_t entry, bool is_alias)
{
    catalog->word[catalog->num_words] = (ps_catalog_word){.text = text, .entry = entry, .is_alias = is_alias};
    catalog->word_text[catalog->num_words++] = text;
}

static ps_code list_gpus(ps_arena *arena, ps_catalog *catalog, ps_status *status)
{
    ps_json gpus = ps_json_member(catalog->root, "gpus");
    int64_t words = ps_json_count(gpus);

    for (ps_json e = ps_json_first(gpus); e.node; e = ps_json_next(e))
        words += ps_json_count(ps_json_member(e, "aliases"));
    catalog->gpu = ps_new(arena, ps_json, ps_json_count(gpus));
    catalog->gpu_name = ps_new(arena, const char *, ps_json_count(gpus));
    catalog->word = ps_new(arena, ps_catalog_word, words);
    catalog->word_text = ps_new(arena, const char *, words);

    for (ps_json e = ps_json_first(gpus); e.node; e = ps_json_next(e)) {
        int32_t index = catalog->num_gpus++;
        catalog->gpu[index] = e;
        PS_TRY(ps_json_check_keys(e, gpu_keys, status));
        PS_TRY(ps_json_get_string(e, "name", PS_REQUIRED, &catalog->gpu_name[index], status));
        add_word(catalog, catalog->gpu_name[index], index, false);
    }
    for (int32_t i = 0; i < catalog->num_gpus; i++)
        for (ps_json a = ps_json_first(ps_json_member(catalog->gpu[i], "aliases")); a.node; a = ps_json_next(a))
            add_word(catalog, ps_json_text(a), i, true);
    return PS_OK;
}

ps_code ps_catalog_open(ps_arena *arena, ps_catalog *catalog, ps_status *status)
{
    const ps_builtin *file = ps_builtin_find(PS_BUILTIN_CATALOG, "gpus");

    *catalog = (ps_catalog){0};
    if (!file)
        return ps_fail(status, PS_INTERNAL, "no-catalog", "the catalog of GPUs was not compiled in");
    PS_TRY(ps_json_parse(arena, file->path, file->data, file->size, &catalog->root, status));
    PS_TRY(list_links(arena, catalog, status));
    return list_gpus(arena, catalog, status);
}

// What a GPU does not have is known too, and says so.
static void fill_absent(ps_arena *arena, const char *source, ps_gpu *gpu)
{
    for (int i = 0; i < PS_PRECISIONS; i++)
        if (!gpu->peak_flops[i].source)
            gpu->peak_flops[i] =
                (ps_figure){0, PS_ORIGIN_LOOKED_UP, ps_text_format(arena, "%s: not a format of this GPU", source)};
    if (!gpu->fabric_bytes_per_s.source)
        gpu->fabric_bytes_per_s = (ps_figure){0, PS_ORIGIN_LOOKED_UP, ps_text_format(arena, "%s: no fabric", source)};
}

static ps_code read_entry(ps_arena *arena, const ps_catalog *catalog, int32_t index, ps_catalog_entry *entry,
                          ps_status *status)
{
    ps_json object = catalog->gpu[index];
    ps_figure_context context = {.arena = arena, .origin = PS_ORIGIN_LOOKED_UP};
    const char *architecture = NULL;

    *entry = (ps_catalog_entry){.gpu.name = catalog->gpu_name[index]};
    PS_TRY(ps_json_get_string(object, "source", PS_REQUIRED, &context.source, status));
    PS_TRY(ps_json_get_string(object, "architecture", PS_REQUIRED, &architecture, status));
    ps_json shared = ps_json_member(ps_json_member(catalog->root, "architectures"), architecture);
    if (!shared.node)
        return ps_json_fail(object, "unknown-architecture", status, "no architecture is called \"%s\"", architecture);
    PS_TRY(ps_gpu_read(&context, shared, &entry->gpu, status));
    PS_TRY(ps_gpu_read(&context, object, &entry->gpu, status));
    PS_TRY(ps_json_get_string(object, "intra", PS_REQUIRED, &entry->intra, status));
    PS_TRY(ps_json_get_string(object, "nic", PS_REQUIRED, &entry->nic, status));
    fill_absent(arena, context.source, &entry->gpu);
    ps_gpu_mark_unknown(&entry->gpu);
    return PS_OK;
}

ps_code ps_catalog_find(ps_arena *arena, const ps_catalog *catalog, const char *name, ps_catalog_entry *entry,
                        const char **alias_of, ps_status *status)
{
    *alias_of = NULL;
    for (int32_t i = 0; i < catalog->num_words; i++) {
        const ps_catalog_word *word = &catalog->word[i];
        if (strcasecmp(word->text, name) != 0)
            continue;
        if (word->is_alias)
            *alias_of = catalog->gpu_name[word->entry];
        return read_entry(arena, catalog, word->entry, entry, status);
    }

    ps_fail(status, PS_BAD_INPUT, "unknown-gpu", "no GPU type is called \"%s\"", name);
    const char *near = ps_text_nearest(name, catalog->word_text, catalog->num_words);
    if (!near)
        near = ps_catalog_match_text(arena, catalog, name, 0);
    if (near)
        return ps_fail_hint(status, "did you mean \"%s\"?", near);
    ps_text list = {.arena = arena};
    for (int32_t i = 0; i < catalog->num_gpus; i++)
        ps_text_addf(&list, "%s%s", i ? ", " : "", catalog->gpu_name[i]);
    return ps_fail_hint(status, "known are %s; a cluster file may describe any other", list.data);
}

static int32_t link_index(const ps_catalog *catalog, const char *name)
{
    for (int32_t i = 0; i < catalog->num_links; i++)
        if (strcasecmp(catalog->link_name[i], name) == 0)
            return i;
    return -1;
}

bool ps_catalog_link_is_nic(const ps_catalog *catalog, const char *name)
{
    return link_index(catalog, name) >= catalog->first_nic;
}

ps_code ps_catalog_find_link(ps_arena *arena, const ps_catalog *catalog, const char *name, ps_link *out,
                             ps_status *status)
{
    int32_t index = link_index(catalog, name);
    if (index >= 0) {
        ps_figure_context context = {.arena = arena, .origin = PS_ORIGIN_LOOKED_UP};
        *out = (ps_link){.name = catalog->link_name[index]};
        PS_TRY(ps_json_get_string(catalog->link[index], "source", PS_REQUIRED, &context.source, status));
        return ps_link_read(&context, catalog->link[index], out, status);
    }

    ps_fail(status, PS_BAD_INPUT, "unknown-link", "no link or NIC type is called \"%s\"", name);
    const char *near = ps_text_nearest(name, catalog->link_name, catalog->num_links);
    if (near)
        return ps_fail_hint(status, "did you mean \"%s\"?", near);
    ps_text list = {.arena = arena};
    for (int32_t i = 0; i < catalog->num_links; i++)
        ps_text_addf(&list, "%s%s", i ? ", " : "", catalog->link_name[i]);
    return ps_fail_hint(status, "known are %s", list.data);
}

ps_code ps_catalog_gpu(ps_arena *arena, const char *name, ps_gpu *out, ps_status *status)
{
    ps_catalog catalog;
    ps_catalog_entry entry;
    const char *alias_of;

    PS_TRY(ps_catalog_open(arena, &catalog, status));
    PS_TRY(ps_catalog_find(arena, &catalog, name, &entry, &alias_of, status));
    *out = entry.gpu;
    return PS_OK;
}

ps_code ps_catalog_link(ps_arena *arena, const char *name, ps_link *out, ps_status *status)
{
    ps_catalog catalog;

    PS_TRY(ps_catalog_open(arena, &catalog, status));
    return ps_catalog_find_link(arena, &catalog, name, out, status);
}

ps_code ps_catalog_names(ps_arena *arena, const char *const **names, int32_t *count, ps_status *status)
{
    ps_catalog catalog;

    PS_TRY(ps_catalog_open(arena, &catalog, status));
    *names = catalog.gpu_name;
    *count = catalog.num_gpus;
    return PS_OK;
}
