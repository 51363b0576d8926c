package catalog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
)

// model is a reference implementation of access in plain Go, without ids, tables or pages.
type model struct {
	people []*person
	nodes  []*node // including deleted ones
	deaths int
}

type person struct {
	auth.Principal

	signedIn bool
}

// node is a namespace or, if it has a parent, a dataset.
type node struct {
	owner    string
	name     string
	parent   *node
	died     int                  // sequence number of its deletion; 0 if it exists
	grants   map[string]auth.Role // by username or @group
	revision int64
	epoch    int64
}

// caller is a person or a token of a person.
type caller struct {
	auth.Principal

	targets []target // targets of a restricted token
}

type target struct {
	node  *node
	owner string // owner at that time: a transferred dataset is a different target
}

// called reports whether a path is or was the path of a node.
func (n *node) called(at Path) bool {
	if n.parent == nil {
		return n.owner == at.Username && strings.EqualFold(n.name, at.Namespace) && at.Dataset == ""
	}

	return n.owner == at.Username && strings.EqualFold(n.parent.name, at.Namespace) && strings.EqualFold(n.name, at.Dataset)
}

func (n *node) path() Path {
	if n.parent == nil {
		return Path{Username: n.owner, Namespace: n.name}
	}

	return Path{Username: n.owner, Namespace: n.parent.name, Dataset: n.name}
}

func (m *model) find(at Path) *node {
	for _, n := range m.nodes {
		if n.died == 0 && n.called(at) {
			return n
		}
	}

	return nil
}

// living returns the existing datasets of a namespace, or of all namespaces if in is nil.
func (m *model) living(in *node) (list []*node) {
	for _, n := range m.nodes {
		if n.died == 0 && n.parent != nil && (in == nil || n.parent == in) {
			list = append(list, n)
		}
	}

	return list
}

func (m *model) add(owner, name string, parent *node) *node {
	made := &node{owner: owner, name: name, parent: parent, grants: map[string]auth.Role{}}
	m.nodes = append(m.nodes, made)

	return made
}

// namespaceFor returns the namespace at a path, and creates it if it does not exist.
func (m *model) namespaceFor(at Path) *node {
	at.Dataset = ""
	if found := m.find(at); found != nil {
		return found
	}

	return m.add(at.Username, at.Namespace, nil)
}

func (m *model) kill(n *node) {
	m.deaths++
	n.died = m.deaths
	n.epoch++
}

// revive brings a namespace back because a dataset in it is restored.
func (n *node) revive() {
	n.died = 0
	n.grants = map[string]auth.Role{}
}

func (c caller) reaches(n *node) bool {
	return !isRestricted(c.Principal) || slices.ContainsFunc(c.targets, func(t target) bool {
		return t.owner == n.owner && (t.node == n || t.node == n.parent)
	})
}

func (c caller) role(n *node) (role auth.Role) {
	if n == nil || n.died > 0 || !c.reaches(n) {
		return ""
	}

	names := []string{c.Username}
	for _, group := range c.Groups {
		names = append(names, "@"+group)
	}

	for _, name := range names {
		if granted := n.grants[name]; granted.Exceeds(role) {
			role = granted
		}

		if n.parent != nil && n.parent.grants[name].Exceeds(role) {
			role = n.parent.grants[name]
		}
	}

	if n.owner == c.Username {
		role = auth.Owner
	}

	if role.Exceeds(c.Ceiling()) {
		role = c.Ceiling()
	}

	return role
}

// sees reports whether a caller may see a namespace: as a whole, or at least one dataset in it.
func (m *model) sees(c caller, namespace *node) bool {
	return namespace != nil && (c.role(namespace) != "" ||
		slices.ContainsFunc(m.living(namespace), func(n *node) bool { return c.role(n) != "" }))
}

func allowed(role, need auth.Role) fault.Code {
	switch {
	case role == "":
		return fault.NotFound
	case need.Exceeds(role):
		return fault.Forbidden
	default:
		return ""
	}
}

// round is a random sequence of steps that the catalog and the model both take.
type round struct {
	*rapid.T

	b      *bundle
	m      *model
	tokens []caller
	places []Path // paths where something exists or existed
}

// TestAccessModel checks that the access of every caller equals that of the model after any steps in any order.
func TestAccessModel(t *testing.T) { //nolint:tparallel // the rounds are at once, what follows waits for them
	t.Parallel()

	const checksOfOneRun = 100 // the default of rapid

	runs := 2
	if loops(10) == 10 {
		runs = 5000 / checksOfOneRun
	}

	var (
		b      = newBundle(t)
		rounds atomic.Int64
	)

	// Returns when all rounds are finished, however many run at once.
	t.Run("rounds", func(t *testing.T) {
		for run := range runs {
			t.Run(strconv.Itoa(run), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(t *rapid.T) { newRound(t, b, rounds.Add(1)).play() })
			})
		}
	})

	b.requireSound(t)
	t.Logf("%d rounds", rounds.Load())
}

func newRound(t *rapid.T, b *bundle, number int64) *round {
	r := &round{T: t, b: b, m: &model{}}
	groups := []string{fmt.Sprintf("analysts-%d", number), fmt.Sprintf("Finance-%d", number)}

	for i, name := range []string{"ada", "bob", "cyd"} {
		somebody := &person{Principal: auth.Principal{Username: fmt.Sprintf("%s-%d", name, number)}}

		for _, group := range groups {
			if rapid.Bool().Draw(t, name+" in "+group[:3]) {
				somebody.Groups = append(somebody.Groups, group)
			}
		}

		r.m.people = append(r.m.people, somebody)

		if i == 0 || rapid.Bool().Draw(t, name+" has signed in") {
			r.signIn(somebody)
		}
	}

	// Begin with two datasets.
	ada := r.m.people[0]
	for _, name := range []string{"d1", "d2"} {
		b.create(t, ada.Principal, "n1", name)
		r.know(r.m.add(ada.Username, name, r.m.namespaceFor(Path{Username: ada.Username, Namespace: "n1"})))
	}

	return r
}

func (r *round) signIn(somebody *person) {
	if !somebody.signedIn {
		somebody.Principal = r.b.signIn(r, somebody.Username, somebody.Groups...)
		somebody.signedIn = true
	}
}

func (r *round) play() {
	steps := []func() string{
		r.create, r.create, r.create, r.createNamespace, r.share, r.share, r.share, r.share, r.share, r.unshare, r.unshare, r.unshare, r.rename, r.delete, r.delete,
		r.deleteNamespace, r.deleteNamespace, r.clear, r.define, r.restore, r.restore, r.restoreOwn, r.restoreOwn, r.restoreOwn, r.transfer, r.makeToken, r.makeToken, r.arrive, r.arrive,
	}

	for range rapid.IntRange(6, 12).Draw(r.T, "steps") {
		r.Log(steps[rapid.IntRange(0, len(steps)-1).Draw(r.T, "step")]())
		r.check()
	}

	r.checkReads()
}

// expect compares the result of the catalog with that of the model, and reports whether the operation succeeded.
func (r *round) expect(want fault.Code, err error) bool {
	r.Helper()
	require.Equal(r, want, code(err), "%v", err)

	return err == nil
}

func (r *round) callers() []caller {
	list := slices.Clone(r.tokens)
	for _, somebody := range r.m.people {
		if somebody.signedIn {
			list = append(list, caller{Principal: somebody.Principal})
		}
	}

	return list
}

// often is true most of the time, because refused steps test less than successful ones.
func (r *round) often(label string) bool { return rapid.IntRange(0, 9).Draw(r.T, label) < 8 }

// caller draws the caller of a step, mostly the owner.
func (r *round) caller(at Path) caller {
	list := r.callers()
	if i := slices.IndexFunc(list, func(c caller) bool { return c.Token == nil && c.Username == at.Username }); i >= 0 && r.often("by the owner") {
		return list[i]
	}

	return rapid.SampledFrom(list).Draw(r.T, "caller")
}

// place draws the path of a namespace or a dataset, mostly of one that choice accepts.
func (r *round) place(isDataset bool, choice func(n *node) bool) Path {
	var chosen []*node

	for _, n := range r.m.nodes {
		if (n.parent != nil) == isDataset && choice(n) {
			chosen = append(chosen, n)
		}
	}

	if len(chosen) > 0 && r.often("chosen") {
		return rapid.SampledFrom(chosen).Draw(r.T, "place").path()
	}

	at := Path{Username: rapid.SampledFrom(r.m.people).Draw(r.T, "owner").Username, Namespace: r.name("namespace", "n")}
	if isDataset {
		at.Dataset = r.name("dataset", "d")
	}

	return at
}

func isLiving(n *node) bool { return n.died == 0 }

func isDead(n *node) bool { return n.died > 0 }

func isShared(n *node) bool { return n.died == 0 && len(n.grants) > 0 }

// anyPlace draws the path of a namespace or a dataset.
func (r *round) anyPlace(choice func(n *node) bool) Path {
	return r.place(rapid.Bool().Draw(r.T, "dataset"), choice)
}

func (r *round) name(label, prefix string) string {
	return rapid.SampledFrom([]string{prefix + "1", prefix + "2", strings.ToUpper(prefix) + "1"}).Draw(r.T, label)
}

// spelt returns the path in a form that the caller may write.
func (r *round) spelt(who caller, at Path) Path {
	if who.Username == at.Username && rapid.Bool().Draw(r.T, "self") {
		at.Username = auth.Self
	}

	return at
}

func (r *round) know(n *node) {
	for _, at := range []Path{n.path(), {Username: n.owner, Namespace: n.path().Namespace}} {
		if !slices.ContainsFunc(r.places, func(known Path) bool { return strings.EqualFold(known.String(), at.String()) }) {
			r.places = append(r.places, at)
		}
	}
}
