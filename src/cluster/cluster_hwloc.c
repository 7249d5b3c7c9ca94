// SPDX-License-Identifier: Apache-2.0
//
// cluster_hwloc.c: one node through hwloc. The only file that knows it.
//
// A GPU may appear as several OS devices (CUDA, NVML, OpenCL) of one PCI device, so GPUs are told apart by their PCI
// device; files of machines without those drivers have the PCI device alone. Common ancestors are found by climbing
// parents here, because hwloc_get_common_ancestor_obj() of 2.9 crashes on I/O objects, and the NVLink matrix is read
// cell by cell, because hwloc's transforms overwrite cells where no NVSwitch is.
#include "cluster/cluster_hwloc.h"

#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cluster/hwloc_xml.h"
#include "io/file.h"
#include "pipesched/limits.h"

#define VENDOR_NVIDIA 0x10de
#define VENDOR_AMD 0x1002
#define VENDOR_INTEL 0x8086

// What describes a GPU, best first.
typedef enum backend { CUDA, NVML, RSMI, LEVEL_ZERO, OPENCL, BACKENDS, NO_BACKEND = BACKENDS } backend;

static const struct {
    const char *name;
    const char *prefix;
    const char *model_key;
    const char *memory_key; // in KiB; NULL: never stated
} backends[BACKENDS] = {
    {"CUDA", "cuda", "GPUModel", "CUDAGlobalMemorySize"},
    {"NVML", "nvml", "GPUModel", NULL},
    {"RSMI", "rsmi", "GPUModel", "RSMIVRAMSize"},
    {"LevelZero", "ze", "LevelZeroModel", "LevelZeroHBMSize"},
    {"OpenCL", "opencl", "GPUModel", "OpenCLGlobalMemorySize"},
};

// A GPU of the node being read.
typedef struct found_gpu {
    hwloc_obj_t pci;
    hwloc_obj_t os[BACKENDS];
} found_gpu;

typedef struct reading {
    ps_arena *arena;
    hwloc_topology_t topology;
    ps_node_facts *facts;
    int32_t num_gpus;
    found_gpu gpu[PS_MAX_NODE_GPUS];
} reading;

static backend backend_of(hwloc_obj_t os)
{
    const char *stated = hwloc_obj_get_info_by_name(os, "Backend");

    if (!stated)
        stated = os->subtype;
    for (int i = 0; i < BACKENDS; i++) {
        if (stated ? strcmp(stated, backends[i].name) == 0
                   : os->name && strncmp(os->name, backends[i].prefix, strlen(backends[i].prefix)) == 0)
            return (backend)i;
    }
    return NO_BACKEND;
}

static hwloc_obj_t pci_of(hwloc_obj_t object)
{
    while (object && object->type != HWLOC_OBJ_PCI_DEVICE)
        object = object->parent;
    return object;
}

// Accelerators by PCI class: display controllers of GPU vendors and processing accelerators. Integrated graphics of
// Intel and AMD count as VGA controllers, so those need the other classes.
static bool is_accelerator(hwloc_obj_t pci)
{
    unsigned class_id = pci->attr->pcidev.class_id;
    bool compute = class_id == 0x0302 || class_id == 0x0380 || class_id == 0x1200;

    switch (pci->attr->pcidev.vendor_id) {
    case VENDOR_NVIDIA: return compute || class_id == 0x0300;
    case VENDOR_AMD:
    case VENDOR_INTEL: return compute;
    default: return false;
    }
}

static ps_code add_gpu(reading *r, hwloc_obj_t pci, hwloc_obj_t os, backend kind, ps_status *status)
{
    int32_t i = 0;

    while (i < r->num_gpus && r->gpu[i].pci != pci)
        i++;
    if (i == r->num_gpus) {
        if (r->num_gpus == PS_MAX_NODE_GPUS)
            return ps_fail(status, PS_BAD_INPUT, "too-many-gpus", "more than %d GPUs in one node", PS_MAX_NODE_GPUS);
        r->gpu[r->num_gpus++] = (found_gpu){.pci = pci};
    }
    if (kind != NO_BACKEND && !r->gpu[i].os[kind])
        r->gpu[i].os[kind] = os;
    return PS_OK;
}

// Total order by PCI address; no two devices share one.
static int by_address(const void *a, const void *b)
{
    const struct hwloc_pcidev_attr_s *x = &((const found_gpu *)a)->pci->attr->pcidev;
    const struct hwloc_pcidev_attr_s *y = &((const found_gpu *)b)->pci->attr->pcidev;
    unsigned left[] = {x->domain, x->bus, x->dev, x->func};
    unsigned right[] = {y->domain, y->bus, y->dev, y->func};

    for (int i = 0; i < 4; i++)
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    return 0;
}

static ps_code find_gpus(reading *r, ps_status *status)
{
    hwloc_obj_t o = NULL;

    while ((o = hwloc_get_next_osdev(r->topology, o))) {
        backend kind = backend_of(o);
        hwloc_obj_t pci = pci_of(o);
        // OpenCL also drives processors and integrated graphics.
        if (kind == NO_BACKEND || !pci || (kind == OPENCL && !is_accelerator(pci)))
            continue;
        PS_TRY(add_gpu(r, pci, o, kind, status));
    }
    if (r->num_gpus == 0) {
        while ((o = hwloc_get_next_pcidev(r->topology, o)))
            if (is_accelerator(o))
                PS_TRY(add_gpu(r, o, NULL, NO_BACKEND, status));
    }
    if (r->num_gpus > 0) {
        qsort(r->gpu, (size_t)r->num_gpus, sizeof *r->gpu, by_address);
        return PS_OK;
    }
    ps_fail(status, PS_BAD_INPUT, "no-gpu", "hwloc sees no GPU here");
    return ps_fail_hint(status,
                        "write the cluster as NODESxGPUSxTYPE, such as 1x8xH100-SXM5-80GB, or run lstopo with its I/O "
                        "plugins on the machine that has them");
}

static const char *address_text(ps_arena *arena, hwloc_obj_t pci)
{
    const struct hwloc_pcidev_attr_s *a = &pci->attr->pcidev;
    return ps_text_format(arena, "%04x:%02x:%02x.%x", (unsigned)a->domain, (unsigned)a->bus, (unsigned)a->dev,
                          (unsigned)a->func);
}

// The one NUMA node next to an I/O object; -1 when it is next to several.
static int32_t numa_of(reading *r, hwloc_obj_t object)
{
    hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(r->topology, object);

    if (!near || !near->nodeset || hwloc_bitmap_weight(near->nodeset) != 1)
        return -1;
    return hwloc_bitmap_first(near->nodeset);
}

static int64_t kib_info(hwloc_obj_t os, const char *key)
{
    const char *text = hwloc_obj_get_info_by_name(os, key);
    int64_t kib = 0;
    ps_status ignored = {0};

    if (!text || ps_parse_int(text, 0, PS_MAX_BYTES / 1024, &kib, &ignored) != PS_OK)
        return 0;
    return kib * 1024;
}

// hwloc states the current speed of a link in GB/s, and an idle GPU slows its own down; the bridge above may know
// better.
static double pcie_rate(hwloc_obj_t pci)
{
    float rate = pci->attr->pcidev.linkspeed;
    hwloc_obj_t up = pci->parent;

    if (up && up->type == HWLOC_OBJ_BRIDGE && up->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI &&
        up->attr->bridge.upstream.pci.linkspeed > rate)
        rate = up->attr->bridge.upstream.pci.linkspeed;
    return rate > 0 && rate < 1e6F ? (double)rate * 1e9 : 0; // false for NaN too
}

static void describe_gpu(reading *r, int32_t index)
{
    const found_gpu *found = &r->gpu[index];
    ps_fact_gpu *gpu = &r->facts->gpu[index];

    gpu->pci = address_text(r->arena, found->pci);
    gpu->vendor_id = found->pci->attr->pcidev.vendor_id;
    gpu->device_id = found->pci->attr->pcidev.device_id;
    gpu->numa_node = numa_of(r, found->pci);
    gpu->pcie_bytes_per_s = pcie_rate(found->pci);
    for (int i = 0; i < BACKENDS; i++) {
        hwloc_obj_t os = found->os[i];
        if (!os)
            continue;
        const char *model = hwloc_obj_get_info_by_name(os, backends[i].model_key);
        if (!gpu->name && os->name)
            gpu->name = ps_text_copy(r->arena, os->name);
        if (!gpu->model && model && model[0])
            gpu->model = ps_text_copy(r->arena, model);
        if (gpu->memory_bytes == 0 && backends[i].memory_key)
            gpu->memory_bytes = kib_info(os, backends[i].memory_key);
    }
    if (!gpu->name)
        gpu->name = ps_text_format(r->arena, "gpu%d", (int)index);
}

// Is the lowest common ancestor of both a bridge, so that the path between them never leaves PCIe?
static bool on_one_root(hwloc_obj_t a, hwloc_obj_t b)
{
    for (hwloc_obj_t x = a->parent; x && x->type == HWLOC_OBJ_BRIDGE; x = x->parent)
        for (hwloc_obj_t y = b->parent; y && y->type == HWLOC_OBJ_BRIDGE; y = y->parent)
            if (x == y)
                return true;
    return false;
}

static int32_t gpu_of(const reading *r, hwloc_obj_t object)
{
    hwloc_obj_t pci = pci_of(object);

    for (int32_t i = 0; pci && i < r->num_gpus; i++)
        if (r->gpu[i].pci == pci)
            return i;
    return -1;
}

static bool is_switch(hwloc_obj_t object)
{
    return object && object->subtype && strcmp(object->subtype, "NVSwitch") == 0;
}

// Cells in MB/s between GPUs, NVSwitches and (on POWER) processors. With NVSwitches the cells of pairs are 0 and a
// GPU's rate is the sum of its cells to all of them. O(objects^2).
static void take_nvlink(reading *r, const struct hwloc_distances_s *d)
{
    int64_t n = r->num_gpus;

    r->facts->peer_bytes_per_s = ps_new(r->arena, double, n *n);
    for (unsigned i = 0; i < d->nbobjs; i++) {
        int32_t a = d->objs[i] ? gpu_of(r, d->objs[i]) : -1;
        for (unsigned j = 0; a >= 0 && j < d->nbobjs; j++) {
            hwloc_obj_t other = d->objs[j];
            double rate = (double)d->values[(size_t)i * d->nbobjs + j] * 1e6;
            if (!other || i == j || rate > 1e15)
                continue;
            int32_t b = gpu_of(r, other);
            if (is_switch(other)) {
                r->facts->has_switches = true;
                r->facts->gpu[a].switch_bytes_per_s += rate;
            } else if (b >= 0 && b != a) {
                r->facts->peer_bytes_per_s[a * n + b] = rate;
            }
        }
    }
}

// hwloc writes one constant for every pair that xGMI joins: it tells the pairs, not their rate.
static void take_xgmi(reading *r, const struct hwloc_distances_s *d)
{
    int64_t n = r->num_gpus;

    r->facts->peer_connected = ps_new(r->arena, bool, n *n);
    for (unsigned i = 0; i < d->nbobjs; i++) {
        int32_t a = d->objs[i] ? gpu_of(r, d->objs[i]) : -1;
        for (unsigned j = 0; a >= 0 && j < d->nbobjs; j++) {
            int32_t b = d->objs[j] && i != j ? gpu_of(r, d->objs[j]) : -1;
            if (b >= 0 && b != a && d->values[(size_t)i * d->nbobjs + j] > 0)
                r->facts->peer_connected[a * n + b] = true;
        }
    }
}

static void take_matrix(reading *r, const char *name, void (*take)(reading *, const struct hwloc_distances_s *))
{
    struct hwloc_distances_s *distances = NULL;
    unsigned count = 1;

    if (hwloc_distances_get_by_name(r->topology, name, &count, &distances, 0) != 0 || count == 0 || !distances)
        return;
    take(r, distances);
    hwloc_distances_release(r->topology, distances);
}

static void take_paths(reading *r)
{
    int64_t n = r->num_gpus;

    r->facts->same_pcie_root = ps_new(r->arena, bool, n *n);
    for (int64_t a = 0; a < n; a++)
        for (int64_t b = 0; b < n; b++)
            r->facts->same_pcie_root[a * n + b] = on_one_root(r->gpu[a].pci, r->gpu[b].pci);
    take_matrix(r, "NVLinkBandwidth", take_nvlink);
    take_matrix(r, "XGMIBandwidth", take_xgmi);
}

// Port states are those of the verbs interface; 4 is "active". No state at all counts as active.
static bool any_port_active(hwloc_obj_t os)
{
    bool stated = false;

    for (int port = 1; port <= 2; port++) {
        char key[16];
        snprintf(key, sizeof key, "Port%dState", port);
        const char *value = hwloc_obj_get_info_by_name(os, key);
        if (value && strcmp(value, "4") == 0)
            return true;
        stated = stated || value;
    }
    return !stated;
}

// A network card shows up as a network device, a verbs device or both; one entry a PCI function.
static ps_code find_nics(reading *r, ps_status *status)
{
    ps_fact_nic *nic = ps_new(r->arena, ps_fact_nic, PS_MAX_NODE_NICS);
    hwloc_obj_t o = NULL;
    int32_t count = 0;

    while ((o = hwloc_get_next_osdev(r->topology, o))) {
        bool verbs = o->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS;
        hwloc_obj_t pci = pci_of(o);
        if ((!verbs && o->attr->osdev.type != HWLOC_OBJ_OSDEV_NETWORK) || !pci)
            continue;
        const char *address = address_text(r->arena, pci);
        int32_t i = 0;
        while (i < count && strcmp(nic[i].pci, address) != 0)
            i++;
        if (i == PS_MAX_NODE_NICS)
            return ps_fail(status, PS_BAD_INPUT, "too-many-nics", "more than %d NICs in one node", PS_MAX_NODE_NICS);
        if (i == count) {
            nic[count++] = (ps_fact_nic){.kind = pci->attr->pcidev.class_id == 0x0207 ? "infiniband" : "ethernet",
                                         .pci = address,
                                         .vendor_id = pci->attr->pcidev.vendor_id,
                                         .device_id = pci->attr->pcidev.device_id,
                                         .numa_node = numa_of(r, pci)};
        }
        if (verbs || !nic[i].name)
            nic[i].name = ps_text_copy(r->arena, o->name ? o->name : "nic");
        if (verbs) {
            nic[i].is_rdma = true;
            nic[i].is_active = nic[i].is_active || any_port_active(o);
        }
    }
    r->facts->nic = nic;
    r->facts->num_nics = count;
    return PS_OK;
}

// Everything but the digest, into r->facts.
static ps_code read_topology(reading *r, ps_status *status)
{
    ps_node_facts *facts = r->facts;

    PS_TRY(find_gpus(r, status));
    facts->num_gpus = r->num_gpus;
    facts->gpu = ps_new(r->arena, ps_fact_gpu, r->num_gpus);
    for (int32_t i = 0; i < r->num_gpus; i++)
        describe_gpu(r, i);
    take_paths(r);
    PS_TRY(find_nics(r, status));

    uint64_t memory = hwloc_get_root_obj(r->topology)->total_memory;
    facts->host_memory_bytes = memory <= (uint64_t)PS_MAX_BYTES ? (int64_t)memory : 0;
    return PS_OK;
}

static ps_code read_loaded(ps_arena *arena, hwloc_topology_t topology, const char *source, ps_node_facts *facts,
                           ps_status *status)
{
    reading *r = ps_new(arena, reading, 1);

    *facts = (ps_node_facts){.source = source};
    *r = (reading){.arena = arena, .topology = topology, .facts = facts};
    ps_code code = read_topology(r, status);
    return code == PS_OK ? PS_OK : ps_fail_at(status, source, 0, 0, NULL);
}

static void destroy_topology(void *topology)
{
    hwloc_topology_destroy(topology);
}

// The topology lives as long as the arena. I/O objects must be asked for before loading: hwloc drops them by default.
static ps_code open_topology(ps_arena *arena, hwloc_topology_t *topology, ps_status *status)
{
    if (hwloc_topology_init(topology) != 0)
        return ps_fail(status, PS_EXHAUSTED, "out-of-memory", "hwloc could not start");
    ps_arena_defer(arena, destroy_topology, *topology);
    if (hwloc_topology_set_io_types_filter(*topology, HWLOC_TYPE_FILTER_KEEP_ALL) != 0)
        return ps_fail(status, PS_INTERNAL, "hwloc-load", "hwloc cannot keep I/O devices");
    return PS_OK;
}

ps_code ps_hwloc_read_xml(ps_arena *arena, const char *source, const char *text, int64_t size, ps_node_facts *facts,
                          ps_status *status)
{
    hwloc_topology_t topology;

    PS_TRY(ps_hwloc_xml_check(arena, source, text, size, status));
    if (size > INT32_MAX - 1)
        return ps_fail(status, PS_BAD_INPUT, "hwloc-size", "hwloc XML of more than 2 GiB");
    PS_TRY(open_topology(arena, &topology, status));
    // hwloc's size of a buffer counts the NUL that ends it.
    if (hwloc_topology_set_xmlbuffer(topology, text, (int)size + 1) != 0 || hwloc_topology_load(topology) != 0) {
        ps_fail(status, PS_BAD_INPUT, "hwloc-load", "well-formed XML, but no topology that hwloc can read");
        ps_fail_at(status, source, 0, 0, NULL);
        return ps_fail_hint(status, "write it on the machine itself with: lstopo --of xml node.xml");
    }
    return read_loaded(arena, topology, source, facts, status);
}

ps_code ps_hwloc_read_machine(ps_arena *arena, ps_node_facts *facts, char sha256[65], ps_status *status)
{
    hwloc_topology_t topology;
    char *xml = NULL;
    int size = 0;

    PS_TRY(open_topology(arena, &topology, status));
    // The GL backend opens an X display, which is none of our business.
    (void)hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "gl");
    if (hwloc_topology_load(topology) != 0)
        return ps_fail(status, PS_IO, "hwloc-load", "hwloc cannot read this machine");
    sha256[0] = '\0';
    if (hwloc_topology_export_xmlbuffer(topology, &xml, &size, 0) == 0) {
        ps_sha256(xml, size, sha256);
        hwloc_free_xmlbuffer(topology, xml);
    }
    return read_loaded(arena, topology, "this machine", facts, status);
}
