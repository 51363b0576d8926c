package sandbox

import (
	"fmt"
	"os"
	"runtime"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"
)

// filter loads the system call filters. All filters apply, and the strictest result counts. One filter allows calls by
// name. Before it, there is one filter for each call that is allowed only with certain arguments. They are separate
// programs because the library compares the call number with an argument after a condition that does not match.
func filter() error {
	groups := conditions()
	filters := make([]seccomp.Filter, 0, len(groups)+1)

	for _, group := range groups {
		filters = append(filters, seccomp.Filter{Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{group},
		}})
	}

	filters = append(filters, seccomp.Filter{Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionErrno, // also the result for calls of a foreign architecture
		Syscalls: []seccomp.SyscallGroup{
			{Action: seccomp.ActionAllow, Names: allowed(runtime.GOARCH)},
			{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: []string{"clone3"}}, // the C library falls back to clone
		},
	}})

	if err := seccomp.SetNoNewPrivs(); err != nil {
		return err
	}

	for i, one := range filters {
		one.Flag = seccomp.FilterFlagTSync
		if err := seccomp.LoadFilter(one); err != nil {
			return fmt.Errorf("filter %d: %w", i, err)
		}
	}

	return nil
}

// allowed returns the calls that Go, the C library and DuckDB need for computation and for files in folders that
// Landlock protects. It does not contain calls that create sockets, processes, links or folders, or that change modes,
// owners or times.
func allowed(arch string) []string {
	names := []string{
		// memory
		"mmap", "munmap", "mprotect", "madvise", "mremap", "brk",
		// threads, signals to the own process, time
		"clone", "futex", "set_robust_list", "rseq", "sched_yield", "sched_getaffinity", "gettid", "getpid", "tgkill",
		"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "exit", "exit_group", "prctl",
		"nanosleep", "clock_nanosleep", "clock_gettime", "gettimeofday", "restart_syscall", "getcpu",
		"timer_create", "timer_settime", "timer_delete", "setitimer",
		// waiting
		"epoll_create1", "epoll_ctl", "epoll_pwait", "eventfd2", "pipe2", "ppoll",
		// files
		"read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "lseek", "close", "openat",
		"fstat", "statx", "fcntl", "ftruncate", "fallocate", "fsync", "fdatasync", "fadvise64", "flock", "getdents64",
		"unlinkat", "renameat", "renameat2", "faccessat", "faccessat2", "readlinkat", "getcwd", "dup", "statfs", "fstatfs",
		// information about the process and the machine
		"getrandom", "uname", "sysinfo", "getrusage", "prlimit64", "getuid", "geteuid", "getgid", "getegid", "times",
	}

	switch arch {
	case "amd64":
		return append(names, "newfstatat", "stat", "lstat", "unlink", "rename", "access", "readlink", "poll", "epoll_wait", "getrlimit")
	case "arm64":
		return append(names, "fstatat")
	default:
		return nil
	}
}

// conditions returns the calls that are refused for certain arguments. The kernel ignores the upper half of an int, but
// the conditions do not, so they refuse more calls, not fewer.
func conditions() []seccomp.SyscallGroup {
	const (
		namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
			unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
		lastLock = unix.F_SETLKW // commands up to this one concern descriptors, flags and locks
	)

	own := uint64(os.Getpid()) //nolint:gosec // G115: a process number is positive

	return []seccomp.SyscallGroup{
		// Only threads.
		refuse("clone",
			when{{Argument: 0, Operation: seccomp.BitsNotSet, Value: unix.CLONE_THREAD}},
			when{{Argument: 0, Operation: seccomp.BitsSet, Value: namespaces}}),
		// Only signals to the own process.
		refuse("tgkill", when{{Argument: 0, Operation: seccomp.NotEqual, Value: own}}),
		// Only names of threads and of memory.
		refuse("prctl", when{
			{Argument: 0, Operation: seccomp.NotEqual, Value: unix.PR_SET_NAME},
			{Argument: 0, Operation: seccomp.NotEqual, Value: unix.PR_SET_VMA},
		}),
		// Only its own limits, and only reading them: a privileged process could raise them.
		refuse("prlimit64",
			when{{Argument: 0, Operation: seccomp.NotEqual, Value: 0}},
			when{{Argument: 2, Operation: seccomp.NotEqual, Value: 0}}),
		// Other commands make the kernel signal another process, or keep memory in pipes.
		refuse("fcntl", when{
			{Argument: 1, Operation: seccomp.GreaterThan, Value: lastLock},
			{Argument: 1, Operation: seccomp.NotEqual, Value: unix.F_DUPFD_CLOEXEC},
		}),
		// This memory is not counted by the limit of data.
		refuse("mmap",
			when{
				{Argument: 3, Operation: seccomp.BitsSet, Value: unix.MAP_ANONYMOUS},
				{Argument: 3, Operation: seccomp.BitsSet, Value: unix.MAP_SHARED},
			},
			when{{Argument: 3, Operation: seccomp.BitsSet, Value: unix.MAP_GROWSDOWN}}),
		// Truncating without the right to write, which Landlock before ABI 3 does not detect.
		refuse("openat",
			when{
				{Argument: 2, Operation: seccomp.BitsSet, Value: unix.O_TRUNC},
				{Argument: 2, Operation: seccomp.BitsNotSet, Value: unix.O_WRONLY | unix.O_RDWR},
			},
			when{
				{Argument: 2, Operation: seccomp.BitsSet, Value: unix.O_TRUNC},
				{Argument: 2, Operation: seccomp.BitsSet, Value: unix.O_WRONLY},
				{Argument: 2, Operation: seccomp.BitsSet, Value: unix.O_RDWR},
			}),
	}
}

// when matches if all its conditions match.
type when = seccomp.ArgumentConditions

// refuse returns a group that refuses a call if one of the cases matches.
func refuse(name string, cases ...when) seccomp.SyscallGroup {
	group := seccomp.SyscallGroup{Action: seccomp.ActionErrno}
	for _, one := range cases {
		group.NamesWithCondtions = append(group.NamesWithCondtions, seccomp.NameWithConditions{Name: name, Conditions: one})
	}

	return group
}
