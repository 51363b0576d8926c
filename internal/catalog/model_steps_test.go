package catalog

import (
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
)

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

// newPlace draws a path for something new, often in a namespace where something was deleted.
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

// grantee draws a person or a group, often one that already has a grant.
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

// restore is an operation of an operator, as is transfer.
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

	if r.expect(want, r.b.catalog.RestoreDataset(r.Context(), at)) {
		home := r.m.find(Path{Username: at.Username, Namespace: at.Namespace})
		if home == nil {
			home = last.parent
			home.revive()
		}

		last.died, last.parent = 0, home
		last.epoch++
	}

	return "restore " + at.String()
}

// restoreOwn compares the list of what a person deleted with the model, and restores something from it.
func (r *round) restoreOwn() string {
	owner := rapid.SampledFrom(r.m.people).Draw(r.T, "owner")
	if !owner.signedIn {
		return "restore nothing"
	}

	var (
		dead  []*node
		want  []string
		got   []string
		limit = rapid.IntRange(1, 3).Draw(r.T, "limit of the deleted")
		list  = r.b.deleted(r, owner.Principal, limit)
	)

	for _, n := range r.m.nodes {
		if n.died > 0 && n.owner == owner.Username {
			dead = append(dead, n)
		}
	}

	slices.SortFunc(dead, func(a, b *node) int { return b.died - a.died })

	for _, n := range dead {
		want = append(want, n.path().String())
	}

	for _, one := range list {
		got = append(got, Path{Username: owner.Username, Namespace: one.Namespace, Dataset: one.Dataset}.String())
	}

	require.Equal(r, want, got, "what %s deleted", owner.Username)

	if len(dead) == 0 {
		return "restore nothing"
	}

	i := rapid.IntRange(0, len(dead)-1).Draw(r.T, "which")

	return r.restoreOne(owner, dead[i], list[i])
}

func (r *round) restoreOne(owner *person, dead *node, listed Deleted) string {
	var (
		who  = r.caller(dead.path())
		name = dead.name
		home = dead.parent
		at   = Path{Username: owner.Username, Namespace: name}
		want fault.Code
	)

	if rapid.Bool().Draw(r.T, "under another name") {
		name = r.name("name", "d")
		at.Namespace = name
	}

	if home != nil {
		at = Path{Username: owner.Username, Namespace: home.name, Dataset: name}

		if found := r.m.find(Path{Username: owner.Username, Namespace: home.name}); home.died > 0 && found != nil {
			home = found
		}
	}

	switch {
	case !who.Administers(who.Account):
		want = fault.Forbidden
	case who.Username != owner.Username:
		want = fault.NotFound
	case r.m.find(at) != nil:
		want = fault.Conflict
	}

	restore := func() (Deleted, error) {
		return r.b.catalog.Restore(r.Context(), who.Principal, Restoration{ID: listed.ID, Name: name})
	}

	if restored, err := restore(); r.expect(want, err) {
		if home != nil && home.died > 0 {
			home.revive()
		}

		dead.died, dead.name, dead.parent = 0, name, home
		dead.epoch++
		r.know(dead)

		again, err := restore()
		require.NoError(r, err)
		require.Equal(r, restored, again)

		is := Path{Username: owner.Username, Namespace: restored.Namespace, Dataset: restored.Dataset}
		require.Equal(r, dead.path(), is)
	}

	return fmt.Sprintf("restore %s as %s", at, name)
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
		found.epoch += 2 // it is deleted and restored
		delete(found.grants, to.Username)
		r.know(found)
	}

	return fmt.Sprintf("transfer %s to %s", at, to.Username)
}

// makeToken gives a caller a token. At most two tokens are in use.
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
