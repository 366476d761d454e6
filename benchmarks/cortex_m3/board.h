// Where the flash lies, and the words that QEMU's loader writes before the board starts: how many
// bytes of heap it has, and how many times as fast as QEMU's timer its clock runs.
#define DISK (0x180000)
#define HEAP_BYTES (*(volatile uint32_t *)0x3d0000)
#define SPEED (*(volatile uint32_t *)0x3d0004)
#define STACK_BYTES (7936) // of a Pico
