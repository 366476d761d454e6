"""clawlite: Claw Kernel Protocol agents for boards that cost less than lunch."""

__version__ = "0.1.0"
