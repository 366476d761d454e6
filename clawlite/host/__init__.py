"""The maker's computer: compiler, command line and benchmarks."""
