package main

import (
	"os/exec"
	"syscall"
	"time"
)

// grouped gives a command a group of processes of its own, which also has the services that its tests start. When the context ends, all of
// them get SIGTERM: they would outlive a test that dies.
func grouped(command *exec.Cmd) *exec.Cmd {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = time.Minute

	return command
}

// endGroup ends what an ended command has left of its group.
func endGroup(command *exec.Cmd) {
	signal, group := syscall.SIGTERM, -command.Process.Pid

	for deadline := time.Now().Add(20 * time.Second); syscall.Kill(group, signal) == nil; time.Sleep(50 * time.Millisecond) {
		signal = 0 // only asks whether there is a process

		if time.Now().After(deadline) {
			_ = syscall.Kill(group, syscall.SIGKILL)

			return
		}
	}
}
