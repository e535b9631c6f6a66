// How QEMU enters an image: the note of PVH names the entry, which runs in
// 32-bit protected mode without paging.
.section .note.pvh, "a", @note
.balign 4
.long 4
.long 8
.long 18                        // XEN_ELFNOTE_PHYS32_ENTRY
.asciz "Xen"
.quad start

.section .text.start, "ax", @progbits
.code32
.global start
start:
    cli
    cld
    mov esp, offset stack_top

    // The first 4 GiB where they are, in pages of 2 MiB: present and writable.
    mov edi, offset directories
    mov eax, 0x83
2:  mov dword ptr [edi], eax
    add edi, 8
    add eax, 0x200000
    jnc 2b

    // Four directories of 1 GiB each.
    mov edi, offset pointers
    mov eax, offset directories + 3
    mov ecx, 4
2:  mov dword ptr [edi], eax
    add edi, 8
    add eax, 0x1000
    loop 2b
    mov eax, offset pointers + 3
    mov edi, offset top
    mov dword ptr [edi], eax
    mov cr3, edi

    // Physical address extension, and SSE with its exceptions.
    mov eax, cr4
    or eax, 0x620
    mov cr4, eax

    // Long mode.
    mov ecx, 0xC0000080
    rdmsr
    or eax, 0x100
    wrmsr

    // Paging, and a coprocessor that is there rather than emulated.
    mov eax, cr0
    and eax, 0xFFFFFFFB
    or eax, 0x80000003
    mov cr0, eax

    lgdt [descriptor]
    push 8
    mov eax, offset long_mode
    push eax
    retf

.code64
long_mode:
    mov ax, 16
    mov ds, ax
    mov es, ax
    mov ss, ax
    mov rsp, offset stack_top
    xor ebp, ebp
    call main
    ud2

// Gates for the two vectors of `doorbell`; any other is an error, and resets the machine.
.global prepare_interrupts
prepare_interrupts:
    mov rax, offset kicked
    mov rdi, offset gates + 0x40 * 16
    call gate
    mov rax, offset spurious
    mov rdi, offset gates + 0xFF * 16
    call gate
    lidt [gates_descriptor]
    ret

// An interrupt gate at rdi, to the code at rax, which is below 2 GiB.
gate:
    mov word ptr [rdi], ax
    mov word ptr [rdi + 2], 8
    mov word ptr [rdi + 4], 0x8E00
    shr rax, 16
    mov word ptr [rdi + 6], ax
    ret

// The end of an interrupt is told to the local controller.
kicked:
    push rax
    mov eax, 0xFEE000B0
    mov dword ptr [rax], 0
    pop rax
spurious:
    iretq

.section .rodata.entry, "a", @progbits
.balign 8
segments:
    .quad 0
    .quad 0x00AF9A000000FFFF    // code of 64 bits
    .quad 0x00CF92000000FFFF    // data
descriptor:
    .word 23
    .long segments
gates_descriptor:
    .word 256 * 16 - 1
    .quad gates

.section .bss.entry, "aw", @nobits
.balign 4096
gates:
    .skip 4096
top:
    .skip 4096
pointers:
    .skip 4096
directories:
    .skip 4 * 4096
    // A stack that runs over meets the page tables, and the machine resets.
    .skip 512 * 1024
stack_top:
