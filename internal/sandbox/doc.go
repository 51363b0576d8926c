// Package sandbox runs what reads people's bytes: sealed children of this same binary, used once.
//
// A child is started ahead. It prepares itself (opens its engine) while it is still free, seals itself, says
// that it is ready, and waits for one job. The parent then sets its limits, links files into its folder, talks
// to it in frames, and kills it whatever happened: nothing that a job left behind can meet the next one.
//
//	spawn ──▶ Prepare ──▶ seal ──▶ ready, in the pool ──▶ Start: limits ──▶ Serve, one job ──▶ end ──▶ killed
//	                                     │ died while it waited                 │ limit, nonsense, ctx, Close
//	                                     └──▶ replaced                          └──▶ killed
//
// What holds a child:
//   - Landlock: it reads in/, it reads and writes tmp/ of its own folder, and nothing else; no TCP, no signals.
//   - seccomp: an allow-list of system calls. No sockets, no exec, no fork, no ptrace, no change of modes.
//   - rlimits and the parent's watch: memory, CPU, open files, threads, bytes on disk, wall clock.
//   - An empty environment, and no descriptors but its five pipes and /dev/null.
//   - The parent: everything that a child says is hostile. Frames, their number and their sum are capped, and
//     no call outlives the wall clock of the child.
//
// A child dies with its parent: the kernel kills it when the thread that started it ends, and it ends itself
// when its control pipe closes. What a dead parent left on disk is removed by the next New.
//
// The Tier says how much of this the kernel gives; it is found by trying, not by version.
//
// Errors: ErrTimeout, ErrMemory, ErrOutput, ErrKilled, ErrProtocol, *FailedError; none is a fault, the caller knows
// what the child was doing and says so in its own words.
package sandbox
