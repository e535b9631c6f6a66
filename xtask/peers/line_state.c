/* A walk through lines that another core wrote to, or loaded alone, in plain C: beside `latscope sync line-state`.
 * line_state FIRST SECOND modified|exclusive SEED prints the medians, ns a load: of the other core's lines, of own ones.
 */
#define _GNU_SOURCE
#include <emmintrin.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGE = 4096, LINE = 64, LINES = 256, WALKS = 1000, WARM = 20, LOOKS = 20000 };

static char *memory;
static void **first;
static int second_cpu, writes;
static atomic_int order, done;

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        perror("sched_setaffinity");
        exit(1);
    }
}

/* The line of a page: all sets of the first cache have as many. */
static void **line(int page)
{
    return (void **)(memory + page * PAGE + page % (PAGE / LINE) * LINE);
}

/* Lets others run now and then: on a busy machine the other thread may wait for this CPU. */
static void wait_until_differs(atomic_int *word, int from)
{
    for (int looks = 1; atomic_load(word) == from; looks++)
        if (looks % LOOKS == 0)
            sched_yield();
}

static void *owner(void *unused)
{
    pin(second_cpu);
    for (int last = 0;;) {
        wait_until_differs(&order, last);
        int now = atomic_load(&order);
        if (now < 0)
            return unused;
        for (int page = 0; page < LINES; page++) {
            volatile long *word = (volatile long *)line(page) + 1;
            if (writes)
                *word = *word + 1;
            else
                (void)*word;
        }
        atomic_store(&done, last = now);
    }
}

static double walk(void)
{
    struct timespec from, to;
    void **at = first;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int load = 0; load < LINES; load++)
        at = *(void *volatile *)at;
    clock_gettime(CLOCK_MONOTONIC, &to);
    if (at != first)
        abort();
    return ((to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec)) / LINES;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, WALKS, sizeof *values, ascending);
    return values[WALKS / 2];
}

int main(int count, char **words)
{
    static double theirs[WALKS], own[WALKS];
    int pages[LINES];
    pthread_t thread;

    if (count != 5)
        return 2;
    second_cpu = atoi(words[2]);
    writes = strcmp(words[3], "modified") == 0;
    srandom(atoi(words[4]));
    pin(atoi(words[1]));
    memory = aligned_alloc(2 << 20, 2 << 20);
    madvise(memory, 2 << 20, MADV_HUGEPAGE);
    memset(memory, 0, 2 << 20);
    for (int page = 0; page < LINES; page++)
        pages[page] = page;
    for (int at = LINES - 1; at > 0; at--) {
        int other = random() % (at + 1), page = pages[at];
        pages[at] = pages[other];
        pages[other] = page;
    }
    for (int at = 0; at < LINES; at++)
        *line(pages[at]) = line(pages[(at + 1) % LINES]);
    first = line(pages[0]);
    pthread_create(&thread, NULL, owner, NULL);
    for (int turn = 1; turn <= WARM + WALKS; turn++) {
        if (!writes)
            for (int page = 0; page < LINES; page++)
                _mm_clflush(line(page));
        _mm_mfence();
        atomic_store(&order, turn);
        wait_until_differs(&done, turn - 1);
        double ns = walk(), again = walk();
        if (turn > WARM) {
            theirs[turn - WARM - 1] = ns;
            own[turn - WARM - 1] = again;
        }
    }
    atomic_store(&order, -1);
    pthread_join(thread, NULL);
    printf("%.3f %.3f\n", median(theirs), median(own));
    return 0;
}
