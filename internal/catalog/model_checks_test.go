package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// check compares every access and every list of every caller with the model.
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

// checkReads compares the results of the operations that begin with an access check.
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

	for n := found; n != nil; n = n.parent {
		for grantee, role := range n.grants {
			newcomer := slices.ContainsFunc(r.m.people, func(p *person) bool { return p.Username == grantee && !p.signedIn })
			want = append(want, Share{Grantee: grantee, Role: role, Pending: newcomer, ViaNamespace: n != found})
		}
	}

	require.ElementsMatch(r, want, list)
}

// checkSearch checks that a search finds every visible dataset of that name and nothing that the caller may not see.
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

// checkTargets checks that the targets of a token are shown to its owner by their current names.
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

// visible returns the datasets that a caller must find in a list, with the caller's role.
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
