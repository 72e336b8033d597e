/* Aligned allocations, which are torch's tensors, between pages that may not be touched. Preloaded into the runner.

Each allocation ends less than one alignment before a forbidden page and begins on a page after one. Freed memory stays
forbidden, so that using it later faults as well. What is allocated is filled with `guard_fill`, and so are the bytes
beside it; those are compared when the memory is freed, and the process is aborted if they changed. Only while
`guard_on` is set; what is larger than `guard_limit` bytes is refused then. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define ARENA ((size_t)1 << 36)

struct block { uint64_t size, start; uint8_t fill; };

int guard_on = 0;
int guard_fill = 0xA5;
size_t guard_limit = (size_t)1 << 28;

static char *arena;
static struct block *blocks; /* by page of the arena */
static size_t next_page;
static void (*real_free)(void *);
static void *(*real_realloc)(void *, size_t);
static int (*real_memalign)(void **, size_t, size_t);

__attribute__((constructor)) static void start(void) {
    real_free = dlsym(RTLD_NEXT, "free");
    real_realloc = dlsym(RTLD_NEXT, "realloc");
    real_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    arena = mmap(NULL, ARENA, PROT_NONE, flags, -1, 0);
    blocks = mmap(NULL, ARENA / PAGE * sizeof(struct block), PROT_READ | PROT_WRITE, flags, -1, 0);
    if (arena == MAP_FAILED || blocks == MAP_FAILED) _exit(70);
}

static int is_guarded(const void *p) { return arena && (const char *)p >= arena && (const char *)p < arena + ARENA; }

int posix_memalign(void **out, size_t alignment, size_t size) {
    if (!guard_on || alignment > PAGE) return real_memalign(out, alignment, size);
    if (size > guard_limit) return ENOMEM;
    size_t pages = (size + PAGE - 1) / PAGE + (size == 0);
    size_t first = __atomic_fetch_add(&next_page, pages + 2, __ATOMIC_RELAXED) + 1;
    if ((first + pages + 1) * PAGE > ARENA) return ENOMEM;
    char *base = arena + first * PAGE;
    if (mprotect(base, pages * PAGE, PROT_READ | PROT_WRITE)) return ENOMEM;
    memset(base, guard_fill, pages * PAGE);
    size_t start = (pages * PAGE - size) / alignment * alignment;
    blocks[(base + start - arena) / PAGE] = (struct block){size, first, (uint8_t)guard_fill};
    *out = base + start;
    return 0;
}

static void check(const char *from, const char *to, uint8_t fill) {
    for (; from < to; from++)
        if ((uint8_t)*from != fill) {
            static const char said[] = "guard: memory beside an allocation was written to\n";
            if (write(2, said, sizeof said - 1) < 0) _exit(70);
            abort();
        }
}

void free(void *p) {
    if (!is_guarded(p)) {
        real_free(p);
        return;
    }
    struct block *block = &blocks[((char *)p - arena) / PAGE];
    char *base = arena + block->start * PAGE;
    size_t length = ((char *)p + block->size - base + PAGE - 1) / PAGE * PAGE;
    if (length == 0) length = PAGE;
    check(base, p, block->fill);
    check((char *)p + block->size, base + length, block->fill);
    madvise(base, length, MADV_DONTNEED);
    mprotect(base, length, PROT_NONE);
}

void *realloc(void *p, size_t size) {
    if (!is_guarded(p)) return real_realloc(p, size);
    void *made = NULL;
    if (posix_memalign(&made, 64, size)) return NULL;
    size_t held = blocks[((char *)p - arena) / PAGE].size;
    memcpy(made, p, held < size ? held : size);
    free(p);
    return made;
}
