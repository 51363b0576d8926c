package sandbox

import "fmt"

// Tier is the degree of isolation that the kernel supports. The zero value is the strictest.
type Tier int

const (
	Full    Tier = iota // a Landlock that covers files, TCP, devices and signals, and seccomp
	Reduced             // an older Landlock, and seccomp
	None                // less than Reduced, only if the operator allows it: limits, and what else the kernel supports
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

// ParseTier parses the result of String.
func ParseTier(name string) (Tier, error) {
	for _, tier := range []Tier{Full, Reduced, None} {
		if tier.String() == name {
			return tier, nil
		}
	}

	return Full, fmt.Errorf("%q is not a tier of isolation: use full, reduced or none", name)
}

// fullLandlock is the first Landlock ABI that covers everything that this package needs.
const fullLandlock = 7

// seal says which mechanisms restrict a child. A Landlock ABI of 0 means no Landlock.
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

// seal returns the strongest seal for Full, and the weakest seal of the tier for the others.
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
