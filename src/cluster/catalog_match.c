// SPDX-License-Identifier: Apache-2.0
//
// catalog_match.c: from what drivers, labels and PCI ids call a device to its name in the catalog.
//
// A pattern matches whole words, without regard to case and with '-', '_' and ' ' alike, so that "NVIDIA H100 80GB
// HBM3" and the label "NVIDIA-H100-80GB-HBM3" are one. The longest pattern wins, then the earlier entry.
#include "cluster/catalog.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cluster/gpu_json.h"

static int folded(char c)
{
    return c == '-' || c == '_' ? ' ' : tolower((unsigned char)c);
}

static bool has_words(const char *text, const char *pattern)
{
    size_t length = strlen(pattern);

    for (const char *at = text; *at; at++) {
        size_t i = 0;
        while (i < length && at[i] && folded(at[i]) == folded(pattern[i]))
            i++;
        bool starts = at == text || !isalnum((unsigned char)at[-1]);
        if (i == length && starts && !isalnum((unsigned char)at[length]))
            return true;
    }
    return false;
}

static bool any_matches(ps_json patterns, const char *text, size_t *longest)
{
    bool found = false;

    *longest = 0;
    for (ps_json p = ps_json_first(patterns); p.node; p = ps_json_next(p)) {
        const char *pattern = ps_json_text(p);
        if (!has_words(text, pattern))
            continue;
        found = true;
        if (strlen(pattern) > *longest)
            *longest = strlen(pattern);
    }
    return found;
}

// Drivers report 1 to 8 % less than the nominal size; another variant of a GPU differs by far more.
static bool memory_fits(ps_arena *arena, ps_json gpu, int64_t memory_bytes)
{
    ps_figure_context context = {.arena = arena, .origin = PS_ORIGIN_LOOKED_UP, .source = ""};
    ps_figure nominal = {0};
    ps_status ignored = {0};

    if (memory_bytes <= 0 ||
        ps_figure_read(&context, gpu, "memory_nominal", PS_FIGURE_BYTES, &nominal, &ignored) != PS_OK)
        return true;
    double share = (double)memory_bytes / nominal.value;
    return share > 0.80 && share < 1.06;
}

const char *ps_catalog_match_text(ps_arena *arena, const ps_catalog *catalog, const char *text, int64_t memory_bytes)
{
    const char *best = NULL;
    size_t best_length = 0;

    for (int32_t i = 0; i < catalog->num_gpus; i++) {
        size_t length;
        size_t ignored;
        if (!any_matches(ps_json_member(catalog->gpu[i], "match"), text, &length) || length <= best_length)
            continue;
        if (any_matches(ps_json_member(catalog->gpu[i], "except"), text, &ignored))
            continue;
        if (!memory_fits(arena, catalog->gpu[i], memory_bytes))
            continue;
        best = catalog->gpu_name[i];
        best_length = length;
    }
    return best;
}

static bool lists_pci(ps_json object, uint32_t vendor, uint32_t device)
{
    char id[32];

    snprintf(id, sizeof id, "%04x:%04x", (unsigned)vendor, (unsigned)device);
    for (ps_json e = ps_json_first(ps_json_member(object, "pci_ids")); e.node; e = ps_json_next(e))
        if (strcmp(ps_json_text(e), id) == 0)
            return true;
    return false;
}

const char *ps_catalog_match_pci(ps_arena *arena, const ps_catalog *catalog, uint32_t vendor, uint32_t device,
                                 int64_t memory_bytes)
{
    for (int32_t i = 0; i < catalog->num_gpus; i++)
        if (lists_pci(catalog->gpu[i], vendor, device) && memory_fits(arena, catalog->gpu[i], memory_bytes))
            return catalog->gpu_name[i];
    return NULL;
}

const char *ps_catalog_match_nic(const ps_catalog *catalog, const char *kind, uint32_t vendor, uint32_t device)
{
    for (int32_t i = catalog->first_nic; i < catalog->num_links; i++) {
        ps_json nic = catalog->link[i];
        if (strcmp(ps_json_text(ps_json_member(nic, "kind")), kind) == 0 && lists_pci(nic, vendor, device))
            return catalog->link_name[i];
    }
    return NULL;
}

static bool has_rate(ps_arena *arena, const ps_catalog *catalog, const char *name, double bytes_per_s)
{
    ps_link link;
    ps_status ignored = {0};

    // Rates are parsed from decimals, so that equal ones may differ in the last bit.
    return ps_catalog_find_link(arena, catalog, name, &link, &ignored) == PS_OK &&
           link.bytes_per_s.value > bytes_per_s * (1 - 1e-9) && link.bytes_per_s.value < bytes_per_s * (1 + 1e-9);
}

const char *ps_catalog_nic_of_rate(ps_arena *arena, const ps_catalog *catalog, const char *preferred,
                                   double bytes_per_s)
{
    if (preferred && has_rate(arena, catalog, preferred, bytes_per_s))
        return preferred;
    for (int32_t i = catalog->first_nic; i < catalog->num_links; i++)
        if (has_rate(arena, catalog, catalog->link_name[i], bytes_per_s))
            return catalog->link_name[i];
    return NULL;
}

const char *ps_catalog_pcie_of_rate(ps_arena *arena, const ps_catalog *catalog, double bytes_per_s)
{
    for (int32_t i = 0; i < catalog->first_nic; i++)
        if (strncmp(catalog->link_name[i], "pcie", 4) == 0 &&
            has_rate(arena, catalog, catalog->link_name[i], bytes_per_s))
            return catalog->link_name[i];
    return NULL;
}

const char *ps_catalog_match(ps_arena *arena, const char *text, int64_t memory_bytes)
{
    ps_catalog catalog;
    ps_status ignored = {0};

    if (ps_catalog_open(arena, &catalog, &ignored) != PS_OK)
        return NULL;
    return ps_catalog_match_text(arena, &catalog, text, memory_bytes);
}
