// Package sandbox runs the code that reads the bytes of users: sealed children, each used for one job. They execute
// a program of their own, quern-engine, so that the program that starts them does not contain their engine, and they do not
// contain the server.
//
// A child is started in advance. It prepares itself (opens its engine) while it is not yet restricted, seals itself,
// sends a ready frame, and waits for one job. The parent then sets its limits, mounts files in its folder, and
// exchanges frames with it. The parent always kills the child at the end, so that nothing that a job leaves behind can
// affect the next one.
//
//	spawn ──▶ Prepare ──▶ seal ──▶ idle, in the pool ──▶ Start: limits ──▶ Serve, one job ──▶ end ──▶ killed
//	                                     │ died while idle                     │ limit, protocol, ctx, Close
//	                                     └──▶ replaced                         └──▶ killed
//
// What restricts a child:
//   - Landlock: it reads in/, it reads and writes tmp/ of its own folder, and nothing else; no TCP, no signals.
//   - seccomp: an allow-list of system calls. No sockets, no exec, no fork, no ptrace, no change of modes.
//   - rlimits and checks by the parent: memory, CPU, open files, threads, bytes on disk, wall clock.
//   - An empty environment, and no descriptors except /dev/null and the child's ends of its four pipes.
//   - The parent: everything that a child sends is untrusted. The size of frames, their number and their sum are
//     limited, and no call lasts longer than the wall clock limit of the child.
//
// A child dies with its parent: the kernel kills it when the thread that started it ends, and it exits when its control
// pipe closes. The next New removes the files that a dead parent left on disk.
//
// All children of a parent execute the file that New opened, also if an upgrade replaces it meanwhile. Each of them says which
// version it has, because a file can also be overwritten: a child of another version is an error.
//
// The Tier says how many of these restrictions the kernel supports. It is determined by trying them, not by the
// kernel's version.
//
// Errors: New and Start return ErrBinary if the file cannot be used. Others: ErrTimeout, ErrMemory, ErrOutput, ErrKilled, ErrProtocol, *FailedError. None of them is a fault: the caller
// knows what the child was doing and returns its own message.
package sandbox
