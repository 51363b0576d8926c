//go:build soak

package e2e

import (
	"regexp"
	"strconv"
	"sync"
	"time"
)

// permitted is what is known about a grant: a request that changes it has an effect at an unknown moment before its answer.
type permitted int

const (
	denied permitted = iota
	unsure
	granted
)

// grantModel is the history of one grant: whether a user may read the dataset orders of another user.
type grantModel struct {
	mutex  sync.Mutex
	states []grantChange
}

type grantChange struct {
	at  time.Time
	now permitted
}

func (g *grantModel) set(now permitted) {
	g.mutex.Lock()
	defer g.mutex.Unlock()

	g.states = append(g.states, grantChange{time.Now(), now})
}

// during returns whether the reader may have been allowed to read at some moment between two moments, and whether at all of them.
func (g *grantModel) during(from, to time.Time) (some, all bool) {
	if g == nil {
		return false, false
	}

	g.mutex.Lock()
	defer g.mutex.Unlock()

	all = true
	now := denied

	for i := 0; ; i++ {
		last := i == len(g.states)

		// The state now lasted from the previous change to this one.
		if ends := last || g.states[i].at.After(from); ends {
			some = some || now != denied
			all = all && now == granted
		}

		if last || g.states[i].at.After(to) {
			return some, all
		}

		now = g.states[i].now
	}
}

// soakMarks matches what every row contains: its owner, and whether it is in a dataset that nobody else may ever read.
var soakMarks = regexp.MustCompile(`mark-(\d+)(-own)?`)

// judge checks that an answer to a request between two moments has only rows that the caller may see.
func (u *soakUser) judge(what string, from, to time.Time, body string) {
	seen := map[string]bool{}

	for _, mark := range soakMarks.FindAllStringSubmatch(body, -1) {
		if seen[mark[0]] {
			continue
		}

		seen[mark[0]] = true
		owner, _ := strconv.Atoi(mark[1])

		if owner == u.index {
			continue
		}

		if some, _ := u.grantFrom(owner).during(from, to); !some || mark[2] != "" {
			u.k.t.Errorf("%s got a row of user %d by %s, from %v to %v: %.300s", u.name, owner, what, from, to, body)
		}
	}
}

// grantFrom returns the model of the grant that this user may have from an owner.
func (u *soakUser) grantFrom(owner int) *grantModel {
	if owner >= len(u.k.people) {
		return nil // the prober shares nothing
	}

	return u.k.people[owner].grants[u.index]
}
