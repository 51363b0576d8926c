package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// model is who may do what, in plain Go. It knows no ids, no tables and no pages.
type model struct {
	people []*person
	nodes  []*node // also those that are dead
	deaths int
}

type person struct {
	auth.Principal

	signedIn bool
}

// node is a namespace, or with a parent a dataset.
type node struct {
	owner    string
	name     string
	parent   *node
	died     int                  // when, 0 if it lives
	grants   map[string]auth.Role // by username or @group
	revision int64
	epoch    int64
}

// caller is a person, or a token of one.
type caller struct {
	auth.Principal

	targets []target // of a restricted token
}

type target struct {
	node  *node
	owner string // then: a transferred dataset is another thing
}

// called tells whether that is, or was, the place of a node.
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

// living lists datasets, those of a namespace if one is given.
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

// namespaceFor returns the namespace at a path, which is made if it is not there.
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

	if n.parent == nil {
		n.grants = map[string]auth.Role{}
	}
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

// sees a namespace also who may see one dataset in it.
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

// round is one story: some steps that the catalog and the model both take.
type round struct {
	*rapid.T

	b      *bundle
	m      *model
	tokens []caller
	places []Path // where something is or was
}

// TestAccessModel: whatever happens, in whatever order, nobody's access ever differs from the model.
func TestAccessModel(t *testing.T) { //nolint:tparallel // the rounds are at once, what follows waits for them
	t.Parallel()

	const checksOfOneRun = 100 // rapid's own default

	runs := 2
	if loops(10) == 10 {
		runs = 5000 / checksOfOneRun
	}

	var (
		b      = newBundle(t)
		rounds atomic.Int64
	)

	// Returns when all have been played, however many at once.
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

	// Something to begin with.
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
		r.deleteNamespace, r.deleteNamespace, r.clear, r.define, r.restore, r.restore, r.transfer, r.makeToken, r.makeToken, r.arrive, r.arrive,
	}

	for range rapid.IntRange(6, 12).Draw(r.T, "steps") {
		r.Log(steps[rapid.IntRange(0, len(steps)-1).Draw(r.T, "step")]())
		r.check()
	}

	r.checkReads()
}

// expect compares what the catalog answered with what the model says, and tells whether it was done.
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

// often is true most of the time: steps that are refused teach less than those that are done.
func (r *round) often(label string) bool { return rapid.IntRange(0, 9).Draw(r.T, label) < 8 }

// caller draws who acts, mostly the owner.
func (r *round) caller(at Path) caller {
	list := r.callers()
	if i := slices.IndexFunc(list, func(c caller) bool { return c.Token == nil && c.Username == at.Username }); i >= 0 && r.often("by the owner") {
		return list[i]
	}

	return rapid.SampledFrom(list).Draw(r.T, "caller")
}

// place draws the path of a namespace or a dataset, mostly of one that the choice says.
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

// anyPlace is a namespace or a dataset.
func (r *round) anyPlace(choice func(n *node) bool) Path {
	return r.place(rapid.Bool().Draw(r.T, "dataset"), choice)
}

func (r *round) name(label, prefix string) string {
	return rapid.SampledFrom([]string{prefix + "1", prefix + "2", strings.ToUpper(prefix) + "1"}).Draw(r.T, label)
}

// spelt writes the path as that caller may.
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

func (r *round) create() string {
	var (
		who  = rapid.SampledFrom(r.callers()).Draw(r.T, "caller")
		at   = r.newPlace(who)
		home = r.m.find(Path{Username: at.Username, Namespace: at.Namespace})
		want fault.Code
	)

	switch {
	case auth.Editor.Exceeds(who.Ceiling()), home == nil && isRestricted(who.Principal), home != nil && !who.reaches(home):
		want = fault.Forbidden
	case r.m.find(at) != nil:
		want = fault.Conflict
	}

	if _, err := r.b.catalog.CreateDataset(r.Context(), who.Principal, NewDataset{Namespace: at.Namespace, Name: at.Dataset}); r.expect(want, err) {
		r.know(r.m.add(at.Username, at.Dataset, r.m.namespaceFor(at)))
	}

	return "create " + at.String()
}

// newPlace draws where something is to be made: anywhere, or where something died.
func (r *round) newPlace(who caller) Path {
	at := Path{Username: who.Username, Namespace: r.name("namespace", "n"), Dataset: r.name("dataset", "d")}

	for _, n := range r.m.nodes {
		if n.died > 0 && n.owner == who.Username && rapid.Bool().Draw(r.T, "again") {
			at.Namespace = n.path().Namespace
		}
	}

	return at
}

func (r *round) createNamespace() string {
	var (
		who  = rapid.SampledFrom(r.callers()).Draw(r.T, "caller")
		at   = Path{Username: who.Username, Namespace: r.newPlace(who).Namespace}
		want fault.Code
	)

	switch {
	case auth.Editor.Exceeds(who.Ceiling()), isRestricted(who.Principal):
		want = fault.Forbidden
	case r.m.find(at) != nil:
		want = fault.Conflict
	}

	if _, err := r.b.catalog.CreateNamespace(r.Context(), who.Principal, NewNamespace{Name: at.Namespace}); r.expect(want, err) {
		r.know(r.m.namespaceFor(at))
	}

	return "create " + at.String()
}

func (r *round) share() string {
	var (
		at      = r.anyPlace(isLiving)
		who     = r.caller(at)
		found   = r.m.find(at)
		grantee = r.grantee(found)
		role    = rapid.SampledFrom([]auth.Role{auth.Viewer, auth.Editor}).Draw(r.T, "role")
		want    = allowed(who.role(found), auth.Owner)
	)

	if want == "" && grantee == who.Username {
		want = fault.ValidationFailed
	}

	if r.expect(want, r.b.catalog.Share(r.Context(), who.Principal, r.spelt(who, at), NewShare{Grantee: grantee, Role: role})) {
		found.grants[grantee] = role
	}

	return fmt.Sprintf("share %s with %s as %s", at, grantee, role)
}

// grantee draws a person or a group, often one that has a grant already.
func (r *round) grantee(on *node) string {
	if on != nil && len(on.grants) > 0 && rapid.Bool().Draw(r.T, "again") {
		return rapid.SampledFrom(slices.Sorted(maps.Keys(on.grants))).Draw(r.T, "grantee")
	}

	somebody := rapid.SampledFrom(r.m.people).Draw(r.T, "grantee")
	if len(somebody.Groups) > 0 && rapid.Bool().Draw(r.T, "group") {
		return "@" + rapid.SampledFrom(somebody.Groups).Draw(r.T, "which")
	}

	return somebody.Username
}

func (r *round) unshare() string {
	var (
		at      = r.anyPlace(isShared)
		who     = r.caller(at)
		found   = r.m.find(at)
		grantee = r.grantee(found)
		want    = allowed(who.role(found), auth.Owner)
	)

	if want == "" && found.grants[grantee] == "" {
		want = fault.NotFound
	}

	if r.expect(want, r.b.catalog.Unshare(r.Context(), who.Principal, r.spelt(who, at), grantee)) {
		delete(found.grants, grantee)
	}

	return fmt.Sprintf("unshare %s with %s", at, grantee)
}

func (r *round) rename() string {
	var (
		at    = r.place(true, isLiving)
		who   = r.caller(at)
		found = r.m.find(at)
		name  = r.name("name", "d")
		want  = allowed(who.role(found), auth.Owner)
	)

	if other := r.m.find(Path{Username: at.Username, Namespace: at.Namespace, Dataset: name}); want == "" && other != nil && other != found {
		want = fault.Conflict
	}

	if _, err := r.b.catalog.UpdateDataset(r.Context(), who.Principal, r.spelt(who, at), DatasetChange{Name: name}); r.expect(want, err) {
		found.name = name
		r.know(found)
	}

	return fmt.Sprintf("rename %s to %s", at, name)
}

func (r *round) delete() string {
	var (
		at    = r.place(true, isLiving)
		who   = r.caller(at)
		found = r.m.find(at)
	)

	if r.expect(allowed(who.role(found), auth.Owner), r.b.catalog.DeleteDataset(r.Context(), who.Principal, r.spelt(who, at))) {
		r.m.kill(found)
	}

	return "delete " + at.String()
}

func (r *round) deleteNamespace() string {
	var (
		at    = r.place(false, isLiving)
		who   = r.caller(at)
		found = r.m.find(at)
		want  = allowed(who.role(found), auth.Owner)
	)

	if want == "" && rapid.Bool().Draw(r.T, "empty it") {
		for _, n := range r.m.living(found) {
			r.expect("", r.b.catalog.DeleteDataset(r.Context(), who.Principal, n.path()))
			r.m.kill(n)
		}
	}

	if want == "" && len(r.m.living(found)) > 0 {
		want = fault.Conflict
	}

	if r.expect(want, r.b.catalog.DeleteNamespace(r.Context(), who.Principal, r.spelt(who, at))) {
		r.m.kill(found)
	}

	return "delete " + at.String()
}

func (r *round) clear() string {
	var (
		at    = r.place(true, isLiving)
		who   = r.caller(at)
		found = r.m.find(at)
	)

	if cleared, err := clearAlone(r.b.catalog, r.Context(), who.Principal, r.spelt(who, at)); r.expect(allowed(who.role(found), auth.Editor), err) {
		found.epoch++
		require.Equal(r, found.epoch, cleared.Epoch)
	}

	return "clear " + at.String()
}

func (r *round) define() string {
	var (
		at     = r.place(true, isLiving)
		who    = r.caller(at)
		found  = r.m.find(at)
		change = Change{DataDescription: new("described")}
	)

	if saved, err := r.b.catalog.PutDefinition(r.Context(), who.Principal, r.spelt(who, at), change, nil); r.expect(allowed(who.role(found), auth.Editor), err) {
		found.revision++
		require.Equal(r, found.revision, saved.Revision)
	}

	return "define " + at.String()
}

// restore is an operator's, as is transfer.
func (r *round) restore() string {
	var (
		at   = r.place(true, isDead)
		want fault.Code
		last *node
	)

	for _, n := range r.m.nodes {
		if n.parent != nil && n.died > 0 && n.called(at) && (last == nil || n.died > last.died) {
			last = n
		}
	}

	switch {
	case last == nil:
		want = fault.NotFound
	case r.m.find(at) != nil:
		want = fault.Conflict
	}

	if r.expect(want, r.b.catalog.RestoreDataset(r.Context(), at, time.Hour)) {
		home := r.m.find(Path{Username: at.Username, Namespace: at.Namespace})
		if home == nil {
			home = last.parent
			home.died = 0
		}

		last.died, last.parent = 0, home
		last.epoch++
	}

	return "restore " + at.String()
}

func (r *round) transfer() string {
	var (
		at    = r.place(true, isLiving)
		to    = rapid.SampledFrom(r.m.people).Draw(r.T, "to")
		found = r.m.find(at)
		there = Path{Username: to.Username, Namespace: at.Namespace, Dataset: at.Dataset}
		want  fault.Code
	)

	switch {
	case found == nil, !to.signedIn, to.Username == at.Username:
		want = fault.NotFound
	case r.m.find(there) != nil:
		want = fault.Conflict
	}

	if r.expect(want, r.b.catalog.TransferDataset(r.Context(), at, to.Username, moveTable)) {
		there.Namespace = found.parent.name
		found.parent, found.owner = r.m.namespaceFor(there), to.Username
		found.epoch += 2 // it goes, and comes back
		delete(found.grants, to.Username)
		r.know(found)
	}

	return fmt.Sprintf("transfer %s to %s", at, to.Username)
}

// makeToken puts a token in somebody's hand; two at most are in use.
func (r *round) makeToken() string {
	var (
		made  = caller{Principal: rapid.SampledFrom(r.callers()).Draw(r.T, "caller").Principal}
		role  = rapid.SampledFrom([]auth.Role{auth.Viewer, auth.Editor, auth.Owner}).Draw(r.T, "role")
		paths []Path
		want  fault.Code
	)

	made.Token = nil
	person := made

	for range rapid.SampledFrom([]int{1, 1, 2, 0}).Draw(r.T, "targets") {
		at := r.anyPlace(func(n *node) bool { return person.role(n) != "" })
		paths = append(paths, at)

		if found := r.m.find(at); made.role(found) == "" {
			want = fault.ValidationFailed
		} else if named := (target{found, at.Username}); !slices.Contains(made.targets, named) {
			made.targets = append(made.targets, named)
		}
	}

	targets, err := r.b.targets(r, person.Principal, paths...)
	if r.expect(want, err) {
		made.Token = &auth.Grant{ID: uuid.New(), Role: role, Restricted: len(paths) > 0, Targets: targets}
		r.tokens = append(r.tokens, made)
		r.tokens = r.tokens[max(0, len(r.tokens)-2):]
	}

	return fmt.Sprintf("token of %s as %s for %v", made.Username, role, paths)
}

func (r *round) arrive() string {
	somebody := rapid.SampledFrom(r.m.people).Draw(r.T, "newcomer")
	r.signIn(somebody)

	return "sign in " + somebody.Username
}

// check compares every access and every list of every caller.
func (r *round) check() {
	limit := rapid.IntRange(1, 3).Draw(r.T, "limit")

	for _, who := range r.callers() {
		for _, at := range r.places {
			r.checkAccess(who, at)

			if at.Dataset == "" {
				r.checkDatasets(who, at, limit)
			}
		}

		r.checkAll(who, limit)
		r.checkTargets(who)
	}
}

// checkReads compares what the operations that begin with such an access give.
func (r *round) checkReads() {
	limit := rapid.IntRange(1, 3).Draw(r.T, "limit of hits")

	for _, who := range r.callers() {
		r.checkSearch(who, rapid.SampledFrom(r.places).Draw(r.T, "where to look"), limit)

		for _, at := range r.places {
			r.checkShares(who, at)

			if at.Dataset != "" {
				r.checkDescription(who, at)
			}
		}
	}
}

func (r *round) checkAccess(who caller, at Path) {
	var (
		role  = who.role(r.m.find(at))
		found access
	)

	require.NoError(r, r.b.db.Do(r.Context(), func(q postgres.Querier) error {
		var err error
		found, _, err = r.b.catalog.shared(r.Context(), q, who.Principal, at)
		require.Equal(r, allowed(role, auth.Owner), code(err), "%s needs owner of %s", who.Username, at)

		return nil
	}))

	for _, need := range []auth.Role{auth.Viewer, auth.Editor, auth.Owner} {
		require.Equal(r, allowed(role, need), code(decide(who.Principal, need, found)), "%s needs %s of %s", who.Username, need, at)
	}
}

func (r *round) checkDescription(who caller, at Path) {
	found := r.m.find(at)
	role := who.role(found)

	described, err := r.b.catalog.Describe(r.Context(), who.Principal, at)
	require.Equal(r, allowed(role, auth.Viewer), code(err))

	definition, err := r.b.catalog.GetDefinition(r.Context(), who.Principal, at)
	require.Equal(r, allowed(role, auth.Viewer), code(err))

	if err == nil {
		shown := Path{Username: described.Owner, Namespace: described.Namespace, Dataset: described.Name}
		require.Equal(r, found.path(), shown)
		require.Equal(r, role, described.Role(who.Principal))
		require.Equal(r, found.epoch, described.Epoch)
		require.Equal(r, found.revision, described.Definition.Revision)
		require.Equal(r, found.revision, definition.Revision)
	}
}

func (r *round) checkDatasets(who caller, at Path, limit int) {
	found := r.m.find(at)

	list, err := r.b.datasets(r, who.Principal, at, limit)
	if !r.m.sees(who, found) {
		require.Equal(r, fault.NotFound, code(err), "%s lists %s", who.Username, at)

		return
	}

	require.NoError(r, err, "%s lists %s", who.Username, at)
	require.ElementsMatch(r, visible(who, r.m.living(found)), shown(who, list), "%s lists %s", who.Username, at)
}

func (r *round) checkShares(who caller, at Path) {
	found := r.m.find(at)
	list, err := r.b.catalog.Shares(r.Context(), who.Principal, at)
	require.Equal(r, allowed(who.role(found), auth.Owner), code(err), "shares of %s", at)

	if err != nil {
		return
	}

	var want []Share
	for grantee, role := range found.grants {
		newcomer := slices.ContainsFunc(r.m.people, func(p *person) bool { return p.Username == grantee && !p.signedIn })
		want = append(want, Share{Grantee: grantee, Role: role, Pending: newcomer})
	}

	require.ElementsMatch(r, want, list)
}

// checkSearch: everything that has the name and can be seen is found, and nothing that cannot be seen.
func (r *round) checkSearch(who caller, at Path, limit int) {
	all := visible(who, r.m.living(nil))

	for _, name := range []string{"d1", "d2"} {
		named := slices.DeleteFunc(r.m.living(nil), func(n *node) bool { return !strings.EqualFold(n.name, name) })
		got := shown(who, r.b.found(r, who.Principal, Search{Words: name, Limit: limit}))

		require.Subset(r, all, got, "%s looks for %s", who.Username, name)
		require.ElementsMatch(r, visible(who, named), got[:min(len(got), len(visible(who, named)))], "%s looks for %s", who.Username, name)

		at.Dataset = ""
		list, _, err := r.b.catalog.Search(r.Context(), who.Principal, Search{Words: name, In: at, Limit: MaxHits})

		if !r.m.sees(who, r.m.find(at)) {
			require.Equal(r, fault.NotFound, code(err), "%s looks for %s in %s", who.Username, name, at)

			continue
		}

		require.NoError(r, err)

		within := visible(who, slices.DeleteFunc(named, func(n *node) bool { return n.parent != r.m.find(at) }))
		require.ElementsMatch(r, within, shown(who, list), "%s looks for %s in %s", who.Username, name, at)
	}
}

func (r *round) checkAll(who caller, limit int) {
	require.ElementsMatch(r, visible(who, r.m.living(nil)), shown(who, r.b.all(r, who.Principal, limit)), "all that %s can see", who.Username)

	for _, owner := range r.m.people {
		var want, got []string

		for _, n := range r.m.nodes {
			if n.died == 0 && n.parent == nil && n.owner == owner.Username && r.m.sees(who, n) {
				want = append(want, fmt.Sprint(n.path(), who.role(n)))
			}
		}

		for _, n := range r.b.namespaces(r, who.Principal, owner.Username, limit) {
			got = append(got, fmt.Sprint(Path{Username: n.Owner, Namespace: n.Name}, n.Role(who.Principal)))
		}

		require.ElementsMatch(r, want, got, "namespaces of %s that %s can see", owner.Username, who.Username)
	}
}

// checkTargets: what a token names is shown to its owner by the names that it has now.
func (r *round) checkTargets(who caller) {
	if who.Token == nil {
		return
	}

	person := caller{Principal: who.Principal}
	person.Token = nil

	var want []Path

	for _, t := range who.targets {
		if t.owner == t.node.owner && person.role(t.node) != "" {
			want = append(want, t.node.path())
		}
	}

	got, err := r.b.catalog.Paths(r.Context(), person.Principal, who.Token.Targets)
	require.NoError(r, err)
	require.ElementsMatch(r, want, got)
}

// visible is what a caller must find in a list, with the role.
func visible(who caller, datasets []*node) (list []string) {
	for _, n := range datasets {
		if role := who.role(n); role != "" {
			list = append(list, fmt.Sprint(n.path(), role))
		}
	}

	return list
}

func shown(who caller, items []Item) (list []string) {
	for _, item := range items {
		list = append(list, fmt.Sprint(Path{Username: item.Owner, Namespace: item.Namespace, Dataset: item.Name}, item.Role(who.Principal)))
	}

	return list
}
