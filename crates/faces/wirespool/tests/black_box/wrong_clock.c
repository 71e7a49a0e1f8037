// Preloaded into a program: its wall clock is CLOCK_AHEAD_S seconds ahead, or as many as the file
// CLOCK_AHEAD_FILE says at the moment, a long. A library cannot stand
// in for the clock of a program that asks the kernel's page of functions itself, so the function on
// that page becomes a jump. x86-64 only.
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

static long own_s;
static volatile long *ahead_s = &own_s;

static int get_time(clockid_t clock, struct timespec *into) {
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(SYS_clock_gettime), "D"((long)clock), "S"(into)
                     : "rcx", "r11", "memory");
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        into->tv_sec += *ahead_s;
    return result;
}

static void replace(unsigned char *code) {
    void *target = get_time;
    memcpy(code, "\x48\xb8", 2);
    memcpy(code + 2, &target, 8);
    memcpy(code + 10, "\xff\xe0", 2);
}

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("CLOCK_AHEAD_S");
    own_s = text ? atol(text) : 0;
    const char *path = getenv("CLOCK_AHEAD_FILE");
    if (path) {
        void *file = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, open(path, O_RDONLY), 0);
        if (file == MAP_FAILED)
            abort();
        ahead_s = file;
    }
    char *page = (char *)getauxval(AT_SYSINFO_EHDR);
    if (!page)
        return;
    Elf64_Ehdr *head = (void *)page;
    Elf64_Phdr *part = (void *)(page + head->e_phoff);
    Elf64_Dyn *entry = 0;
    long base = 0, found = 0;
    for (int i = 0; i < head->e_phnum; i++) {
        if (part[i].p_type == PT_DYNAMIC)
            entry = (void *)(page + part[i].p_offset);
        if (part[i].p_type == PT_LOAD && !found++)
            base = part[i].p_vaddr;
    }
    Elf64_Sym *symbols = 0;
    char *names = 0;
    unsigned *hash = 0;
    for (; entry && entry->d_tag; entry++) {
        char *at = page - base + entry->d_un.d_val;
        if (entry->d_tag == DT_SYMTAB)
            symbols = (void *)at;
        if (entry->d_tag == DT_STRTAB)
            names = at;
        if (entry->d_tag == DT_HASH)
            hash = (void *)at;
    }
    int count = hash ? hash[1] : 20;
    if (mprotect(page, 0x2000, PROT_READ | PROT_WRITE | PROT_EXEC))
        return;
    for (int i = 0; i < count; i++) {
        char *name = names + symbols[i].st_name;
        if (!strcmp(name, "__vdso_clock_gettime") || !strcmp(name, "clock_gettime"))
            replace((unsigned char *)page - base + symbols[i].st_value);
    }
    mprotect(page, 0x2000, PROT_READ | PROT_EXEC);
}
