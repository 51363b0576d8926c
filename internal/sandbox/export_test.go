package sandbox

import (
	"io"

	seccomp "github.com/elastic/go-seccomp-bpf"
)

// Free returns the configuration with children that are not sealed.
func Free(config Config) Config {
	config.free = true

	return config
}

// Older returns the configuration with children that use at most this Landlock ABI.
func Older(config Config, landlock int) Config {
	config.wish = seal{Landlock: landlock, Seccomp: true}

	return config
}

func (s *Sandbox) Landlock() int { return s.seal.Landlock }

func (s *Sandbox) Pids() []int {
	var pids []int
	for _, child := range s.living() {
		pids = append(pids, child.Pid())
	}

	return pids
}

func (c *Child) Pid() int          { return c.cmd.Process.Pid }
func (c *Child) Folder() Folder    { return c.folder }
func Allowed(arch string) []string { return allowed(arch) }

// Conditional returns the calls that are allowed only with certain arguments.
func Conditional() []seccomp.SyscallGroup { return conditions() }

func ReadFrame(r io.Reader) (byte, []byte, error) {
	k, payload, err := readFrame(r)

	return byte(k), payload, err
}

const MaxFrame = maxFrame
