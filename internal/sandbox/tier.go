package sandbox

import "fmt"

// Tier is how well the kernel seals children. Its zero value is the strictest.
type Tier int

const (
	Full    Tier = iota // a Landlock that covers files, TCP, devices and signals, and seccomp
	Reduced             // an older Landlock, and seccomp
	None                // less; only by the operator's word. Limits, and whatever else the kernel has
)

func (t Tier) String() string {
	switch t {
	case Full:
		return "full"
	case Reduced:
		return "reduced"
	default:
		return "none"
	}
}

// ParseTier reads what String writes.
func ParseTier(name string) (Tier, error) {
	for _, tier := range []Tier{Full, Reduced, None} {
		if tier.String() == name {
			return tier, nil
		}
	}

	return Full, fmt.Errorf("%q is no tier of the sandbox: full, reduced or none", name)
}

// fullLandlock is the Landlock ABI that covers all that this package relies on it for.
const fullLandlock = 7

// Seal is what holds a child. A Landlock ABI of 0 is none.
type seal struct {
	Landlock int  `json:"landlock"`
	Seccomp  bool `json:"seccomp"`
}

func (s seal) tier() Tier {
	switch {
	case s.Landlock >= fullLandlock && s.Seccomp:
		return Full
	case s.Landlock >= 1 && s.Seccomp:
		return Reduced
	default:
		return None
	}
}

// seal is the most of Full, and the least of the tiers below.
func (t Tier) seal() seal {
	switch t {
	case Full:
		return seal{Landlock: newestLandlock(), Seccomp: true}
	case Reduced:
		return seal{Landlock: 1, Seccomp: true}
	default:
		return seal{}
	}
}
