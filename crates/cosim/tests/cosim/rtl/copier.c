/*
 * A copier like the built-in one (crates/device/src/copier.rs: the same registers), but at the level of TLPs and with a clock: it stands
 * for RTL where no Verilator is. It does one thing at an edge: takes a TLP, or sends one. Its MSI-X table is at 0x800 of BAR 0.
 *
 * `mistake` makes it do what no device may; `idle=0` keeps it from telling that it is idle; `intx=1` gives it a wire instead of MSI-X;
 * `msi=N` gives it N vectors of MSI in place of MSI-X, of which it uses the last; `flr=1` a Function Level Reset; `room=N` makes it drop
 * completions when it holds N;
 * with `slow=N` it takes a TLP at every Nth edge only; with `most=N` it gives up when more than N of a class are in its buffer.
 */
#include "tlplab_rtl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAGS = 32, QUEUE = 4096, COPIES = 64 };

struct tlp {
    uint16_t bytes;
    uint8_t bar, data[TLPLAB_RTL_TLP_MAX];
};

struct queue {
    unsigned head, count;
    struct tlp *ring;
};

struct copy {
    uint64_t source, destination;
    uint32_t bytes, asked, came, written;
    uint8_t *data, failed, over;
};

struct tag {
    uint8_t busy;
    unsigned copy;
    uint32_t at, left;
};

struct tlplab_rtl {
    uint64_t clock, edge, time;
    int use_idle, intx_only, level, slow, msi, flr, room;
    unsigned most;
    char mistake[32];
    struct tlplab_rtl_registers registers;
    struct queue in[3], answers;
    uint8_t image[0x1C];
    uint32_t table[4], done, failed;
    struct copy copies[COPIES];
    unsigned first, last; /* copies under way */
    struct tag tags[TAGS];
    unsigned interrupts; /* to be sent */
    FILE *wave;
};

static uint32_t be32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}
static void put32(uint8_t *p, uint32_t v) {
    p[0] = (uint8_t)(v >> 24), p[1] = (uint8_t)(v >> 16), p[2] = (uint8_t)(v >> 8), p[3] = (uint8_t)v;
}
static uint32_t le32(const uint8_t *p) {
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}
static uint64_t le64(const uint8_t *p) { return (uint64_t)le32(p + 4) << 32 | le32(p); }
static void putle32(uint8_t *p, uint32_t v) {
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> 8 * i);
}

static struct tlp *push(struct queue *q) {
    struct tlp *t = &q->ring[(q->head + q->count++) % QUEUE];
    return t;
}
static struct tlp *pop(struct queue *q) {
    struct tlp *t = &q->ring[q->head];
    q->head = (q->head + 1) % QUEUE, q->count--;
    return t;
}

static void reset(struct tlplab_rtl *m) {
    for (int c = 0; c < 3; c++) m->in[c].head = m->in[c].count = 0;
    m->answers.head = m->answers.count = 0;
    memset(m->image, 0, sizeof m->image), memset(m->table, 0, sizeof m->table);
    m->table[3] = 1; /* masked */
    m->done = m->failed = m->interrupts = 0, m->level = 0;
    for (unsigned i = 0; i < COPIES; i++) free(m->copies[i].data), m->copies[i].data = NULL;
    m->first = m->last = 0;
    memset(m->tags, 0, sizeof m->tags);
}

struct tlplab_rtl *tlplab_rtl_open(uint32_t abi, const char *parameters, struct tlplab_rtl_identity *identity, char *error) {
    struct tlplab_rtl *m = calloc(1, sizeof *m);
    m->clock = 250000000, m->use_idle = 1, m->slow = 1, m->most = QUEUE, m->room = QUEUE;
    if (abi != TLPLAB_RTL_ABI) {
        snprintf(error, TLPLAB_RTL_ERROR_MAX, "built for version %d", TLPLAB_RTL_ABI);
        return free(m), NULL;
    }
    for (const char *line = parameters; *line; line = strchr(line, '\n') + 1) {
        unsigned long long number;
        int value;
        if (sscanf(line, "pcie_clock=%llu", &number) == 1 && number > 0) m->clock = number;
        else if (sscanf(line, "idle=%d", &value) == 1) m->use_idle = value;
        else if (sscanf(line, "intx=%d", &value) == 1) m->intx_only = value;
        else if (sscanf(line, "msi=%d", &value) == 1) m->msi = value;
        else if (sscanf(line, "flr=%d", &value) == 1) m->flr = value;
        else if (sscanf(line, "room=%d", &value) == 1) m->room = value;
        else if (sscanf(line, "slow=%d", &value) == 1) m->slow = value;
        else if (sscanf(line, "most=%d", &value) == 1) m->most = (unsigned)value;
        else if (sscanf(line, "mistake=%31[^\n]", m->mistake) == 1) continue;
        else {
            snprintf(error, TLPLAB_RTL_ERROR_MAX, "unknown parameter %.*s; there are pcie_clock, idle, intx, msi, flr, room, slow, most, mistake",
                     (int)strcspn(line, "="), line);
            return free(m), NULL;
        }
    }
    identity->abi = strcmp(m->mistake, "abi") ? TLPLAB_RTL_ABI : 7;
    identity->vendor = 0x71AB, identity->device = 0x0001, identity->class_code = 0x080180, identity->revision = 1;
    identity->mps_supported = 2, identity->extended_tags = strcmp(m->mistake, "tag") != 0;
    identity->bars[0].size = strcmp(m->mistake, "bar") ? 4096 : 4097;
    identity->flr = (uint8_t)m->flr;
    if (m->intx_only) identity->intx_pin = 1;
    else if (m->msi) identity->msi_vectors = (uint8_t)m->msi;
    else identity->msix_vectors = 1, identity->msix_table_offset = 0x800, identity->msix_pba_offset = 0xC00;
    for (int c = 0; c < 3; c++) m->in[c].ring = malloc(QUEUE * sizeof(struct tlp));
    m->answers.ring = malloc(QUEUE * sizeof(struct tlp));
    m->registers.mrrs = 2;
    reset(m);
    return m;
}

void tlplab_rtl_close(struct tlplab_rtl *m) {
    reset(m);
    for (int c = 0; c < 3; c++) free(m->in[c].ring);
    free(m->answers.ring);
    if (m->wave) fclose(m->wave);
    free(m);
}

void tlplab_rtl_configure(struct tlplab_rtl *m, const struct tlplab_rtl_registers *registers) {
    m->registers = *registers;
    if (registers->reset) reset(m);
}

static int class_of(const uint8_t *h) {
    if ((h[0] & 0x1F) == 0x0A) return TLPLAB_RTL_COMPLETION;
    return h[0] & 0x40 && (h[0] & 0x1F) == 0 ? TLPLAB_RTL_POSTED : TLPLAB_RTL_NON_POSTED;
}

int tlplab_rtl_receive(struct tlplab_rtl *m, const uint8_t *tlp, size_t bytes, uint8_t bar) {
    int class = class_of(tlp);
    if (class == TLPLAB_RTL_COMPLETION && m->in[class].count >= (unsigned)m->room) return 1;
    struct tlp *t = push(&m->in[class]);
    t->bytes = (uint16_t)bytes, t->bar = bar;
    memcpy(t->data, tlp, bytes);
    return 0;
}

int tlplab_rtl_trace(struct tlplab_rtl *m, const char *path, char *error) {
    m->wave = fopen(path, "w");
    if (m->wave) return 0;
    snprintf(error, TLPLAB_RTL_ERROR_MAX, "cannot be written");
    return -1;
}

static uint32_t lanes(uint32_t enables) { return (enables & 1) | (enables & 2) << 7 | (enables & 4) << 14 | (enables & 8) << 21; }

static void write_dword(struct tlplab_rtl *m, uint32_t offset, uint32_t enables, const uint8_t *data) {
    uint32_t mask = lanes(enables) * 0xFF;
    if (offset >= 0x800 && offset < 0x810) {
        uint32_t *entry = &m->table[(offset - 0x800) / 4];
        *entry = (*entry & ~mask) | (le32(data) & mask);
    }
    if (offset >= 0x14) return;
    putle32(m->image + offset, (le32(m->image + offset) & ~mask) | (le32(data) & mask));
    if (offset != 0x10) return;
    m->level = 0;
    struct copy *c = &m->copies[m->last++ % COPIES];
    free(c->data);
    memset(c, 0, sizeof *c);
    c->source = le64(m->image), c->destination = le64(m->image + 8), c->bytes = le32(m->image + 16);
    c->data = malloc(c->bytes + 1);
}

static void take_write(struct tlplab_rtl *m, const struct tlp *t) {
    int far = t->data[0] >> 5 & 1;
    uint32_t dw = ((uint32_t)(t->data[2] & 3) << 8 | t->data[3]), offset = be32(t->data + 8 + 4 * far) & 0xFFC;
    for (uint32_t i = 0; i < dw; i++) {
        uint32_t enables = i == 0 ? t->data[7] & 15 : i == dw - 1 ? t->data[7] >> 4 : 15;
        write_dword(m, offset + 4 * i, enables, t->data + 12 + 4 * far + 4 * i);
    }
}

static void take_read(struct tlplab_rtl *m, const struct tlp *t) {
    int far = t->data[0] >> 5 & 1;
    uint32_t dw = (uint32_t)(t->data[2] & 3) << 8 | t->data[3], first = t->data[7] & 15, last = t->data[7] >> 4;
    uint32_t offset = be32(t->data + 8 + 4 * far) & 0xFFC, skip = first ? (uint32_t)__builtin_ctz(first) : 0;
    uint32_t end = last ? last : first, cut = end ? 3 - (31 - (uint32_t)__builtin_clz(end)) : 3;
    uint32_t count = first ? dw * 4 - skip - cut : 1;
    struct tlp *a = push(&m->answers);
    a->bytes = (uint16_t)(12 + 4 * dw);
    put32(a->data, 0x4A000000u | dw);
    put32(a->data + 4, (uint32_t)m->registers.id << 16 | count);
    put32(a->data + 8, be32(t->data + 4) >> 8 << 8 | ((offset + skip) & 0x7F));
    putle32(m->image + 0x14, m->done), putle32(m->image + 0x18, m->failed);
    for (uint32_t i = 0; i < dw; i++) {
        uint32_t at = offset + 4 * i;
        uint32_t value = at < 0x1C ? le32(m->image + at) : at >= 0x800 && at < 0x810 ? m->table[(at - 0x800) / 4] : 0;
        putle32(a->data + 12 + 4 * i, value);
    }
}

static void take_completion(struct tlplab_rtl *m, const struct tlp *t) {
    struct tag *tag = &m->tags[t->data[10] % TAGS];
    uint32_t dw = t->data[0] & 0x40 ? (uint32_t)(t->data[2] & 3) << 8 | t->data[3] : 0, skip = t->data[11] & 3;
    struct copy *c = &m->copies[tag->copy];
    if (!tag->busy || t->data[10] >= TAGS) return;
    uint32_t bytes = dw * 4 > skip ? dw * 4 - skip : 0;
    if (bytes > tag->left) bytes = tag->left;
    if (t->data[6] >> 5 || t->data[2] & 0x40) c->failed = 1;
    else memcpy(c->data + tag->at, t->data + 12 + skip, bytes);
    if (t->data[6] >> 5) bytes = tag->left;
    tag->at += bytes, tag->left -= bytes, c->came += bytes;
    if (tag->left == 0) tag->busy = 0;
}

/* A memory request for so many bytes: its header; returns the length of that. */
static uint32_t request(struct tlplab_rtl *m, uint8_t *h, int write, uint64_t address, uint32_t bytes, uint8_t tag) {
    uint32_t skip = address & 3, dw = (skip + bytes + 3) / 4, end = (skip + bytes) & 3;
    uint32_t first = 15u << skip & 15, last = end ? 15u >> (4 - end) : 15;
    int far = address >> 32 != 0;
    if (dw == 1) first &= last, last = 0;
    put32(h, (uint32_t)write << 30 | (uint32_t)far << 29 | (dw & 0x3FF));
    put32(h + 4, (uint32_t)m->registers.id << 16 | (uint32_t)tag << 8 | last << 4 | first);
    if (far) put32(h + 8, (uint32_t)(address >> 32));
    put32(h + 8 + 4 * far, (uint32_t)address & ~3u);
    return 12 + 4 * (uint32_t)far;
}

static uint32_t chunk(uint64_t address, uint32_t left, uint32_t most) {
    uint32_t room = most - (uint32_t)(address % most);
    return left < room ? left : room;
}

static int send_read(struct tlplab_rtl *m, struct tlplab_rtl_output *out) {
    for (unsigned i = m->first; i != m->last; i++) {
        struct copy *c = &m->copies[i % COPIES];
        if (c->asked == c->bytes) continue;
        for (uint8_t t = 0; t < TAGS; t++) {
            if (m->tags[t].busy) continue;
            uint32_t most = 128u << m->registers.mrrs << (strcmp(m->mistake, "long") ? 0 : 1);
            uint32_t bytes = chunk(c->source + c->asked, c->bytes - c->asked, most);
            m->tags[t] = (struct tag){1, i % COPIES, c->asked, bytes};
            out->tlp_bytes = (uint16_t)request(m, out->tlp, 0, c->source + c->asked, bytes, t);
            c->asked += bytes;
            return 1;
        }
    }
    return 0;
}

static int send_write(struct tlplab_rtl *m, struct tlplab_rtl_output *out) {
    if (m->interrupts) {
        m->interrupts--;
        const struct tlplab_rtl_registers *r = &m->registers;
        uint64_t address = r->msi_enable ? r->msi_address : (uint64_t)m->table[1] << 32 | m->table[0];
        uint32_t data = r->msi_enable ? r->msi_data | (r->msi_vectors - 1u) : m->table[2];
        uint32_t header = request(m, out->tlp, 1, address, 4, 0);
        putle32(out->tlp + header, data);
        out->tlp_bytes = (uint16_t)(header + 4);
        return 1;
    }
    if (m->first == m->last) return 0;
    struct copy *c = &m->copies[m->first % COPIES];
    if (c->came < c->bytes || c->asked < c->bytes) return 0;
    if (c->written < c->bytes && !c->failed) {
        uint64_t address = c->destination + c->written;
        uint32_t most = 128u << m->registers.mps << (strcmp(m->mistake, "payload") ? 0 : 1);
        uint32_t bytes = chunk(address, c->bytes - c->written, most), skip = address & 3, words = (skip + bytes + 3) / 4;
        uint32_t header = request(m, out->tlp, 1, address, bytes, 0);
        memset(out->tlp + header, 0, words * 4);
        memcpy(out->tlp + header + skip, c->data + c->written, bytes);
        out->tlp_bytes = (uint16_t)(header + words * 4);
        c->written += bytes;
        return 1;
    }
    m->first++;
    if (c->failed) m->failed++;
    else m->done++;
    if (m->intx_only) m->level = 1;
    else if (m->registers.msix_enable || m->registers.msi_enable) m->interrupts++;
    return 0;
}

/* Actions that no device may take; each begins with the first copy. */
static int send_mistake(struct tlplab_rtl *m, struct tlplab_rtl_output *out) {
    if (m->first == m->last || !*m->mistake) return 0;
    uint32_t header = request(m, out->tlp, 0, 0x1000, 64, 3);
    out->tlp_bytes = (uint16_t)header;
    if (!strcmp(m->mistake, "junk")) memset(out->tlp, 0xFF, 16);
    else if (!strcmp(m->mistake, "short")) out->tlp_bytes = 7;
    else if (!strcmp(m->mistake, "requester")) out->tlp[4] ^= 0x40;
    else if (!strcmp(m->mistake, "tag")) out->tlp[6] = 200;
    else if (!strcmp(m->mistake, "crosses")) header = request(m, out->tlp, 0, 0x1FE0, 64, 3);
    else if (!strcmp(m->mistake, "type")) out->tlp[0] = 0x04, out->tlp[3] = 1, out->tlp[7] = 0x0F;
    else if (!strcmp(m->mistake, "holes")) out->tlp[3] = 1, out->tlp[7] = 0x05;
    else return out->tlp_bytes = 0;
    return 1;
}

static void edge(struct tlplab_rtl *m, uint8_t room, struct tlplab_rtl_output *out) {
    static const int order[] = {TLPLAB_RTL_POSTED, TLPLAB_RTL_COMPLETION, TLPLAB_RTL_NON_POSTED};
    if (m->wave) fprintf(m->wave, "%llu\n", (unsigned long long)m->time);
    for (int i = 0; i < 3 && m->edge % (unsigned)m->slow == 0; i++) {
        int class = order[i];
        if (m->in[class].count == 0) continue;
        const struct tlp *t = pop(&m->in[class]);
        out->taken[class] = strcmp(m->mistake, "taken") ? 1 : 99;
        if (class == TLPLAB_RTL_POSTED) take_write(m, t);
        else if (class == TLPLAB_RTL_COMPLETION) take_completion(m, t);
        else take_read(m, t);
        break;
    }
    if (m->registers.bus_master || !strcmp(m->mistake, "bus-master")) {
        if (room & 2 && send_mistake(m, out)) return;
        if (room & 1 && send_write(m, out)) return;
        if (room & 2 && send_read(m, out)) return;
    }
    if (room & 4 && m->answers.count) {
        const struct tlp *a = pop(&m->answers);
        memcpy(out->tlp, a->data, a->bytes);
        out->tlp_bytes = a->bytes;
    }
}

int tlplab_rtl_run(struct tlplab_rtl *m, uint64_t until, uint8_t room, struct tlplab_rtl_output *out) {
    int was = m->level;
    memset(out->taken, 0, sizeof out->taken);
    out->tlp_bytes = 0, out->idle = 0;
    for (;;) {
        unsigned waiting = m->in[0].count + m->in[1].count + m->in[2].count + m->answers.count + m->interrupts;
        uint64_t next = (uint64_t)(((__uint128_t)m->edge * 1000000000000000u + m->clock - 1) / m->clock);
        out->idle = m->use_idle && waiting == 0 && m->first == m->last;
        if (out->idle && m->time < until) { /* nothing happens at the edges in between */
            m->edge = (uint64_t)(((__uint128_t)until * m->clock + 999999999999999u) / 1000000000000000u);
            m->time = until;
            break;
        }
        if (next >= until) {
            if (m->time < until) m->time = until;
            break;
        }
        m->time = next, m->edge++;
        for (int c = 0; c < 2; c++) {
            if (m->in[c].count <= m->most) continue;
            snprintf(out->error, sizeof out->error, "%u TLPs of class %d in a buffer for %u", m->in[c].count, c, m->most);
            return -1;
        }
        edge(m, room, out);
        if (!strcmp(m->mistake, "gives-up") && m->first != m->last) {
            snprintf(out->error, sizeof out->error, "assertion failed at copier.c");
            return -1;
        }
        if (out->tlp_bytes || out->taken[0] || out->taken[1] || out->taken[2] || m->level != was) break;
    }
    out->time = m->time, out->intx = (uint8_t)m->level;
    return 0;
}
