package catalog

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Leave deletes the caller's own grant on a namespace or a dataset of another user. It returns the grants by which the caller
// still has access: those of the caller's groups and, for a dataset, those on its namespace. Grants on single datasets of a
// namespace do not change and are not returned.
//
// Faults: NotFound if the caller may not see the target, Forbidden for tokens that may not change access, InvalidState if the
// caller has no grant of their own.
func (c Catalog) Leave(ctx context.Context, who auth.Principal, at Path) (remaining []Share, err error) {
	err = c.DB.InTx(ctx, func(tx postgres.Tx) error {
		target, about, err := c.visible(ctx, tx, who, at)
		if err != nil {
			return err
		}

		if err := mayLeave(who, target, at); err != nil {
			return err
		}

		// Lock the target, so that a dataset that moves to another namespace at the same time keeps its directory correct.
		if isLive, err := holdTarget(ctx, tx, &target); err != nil || !isLive {
			return orAbsent(err)
		}

		removed, err := deleteGrants(ctx, tx, target, who.Subjects()[:ownSubjects])
		if err != nil {
			return err
		}

		if remaining, err = c.stillGranted(ctx, tx, who, target); err != nil {
			return err
		}

		if removed == 0 {
			return noGrant(remaining)
		}

		return audit.WriteTx(ctx, tx, who.Audit(target.account, c.now(), "share.leave", about))
	})

	return remaining, err
}

// ownSubjects is how many of a principal's subjects are the person: the account and the username. The others are groups.
const ownSubjects = 2

// visible returns a dataset, or a namespace of which the caller may see at least one dataset.
func (c Catalog) visible(ctx context.Context, q postgres.Querier, who auth.Principal, at Path) (access, audit.Target, error) {
	if at.Dataset == "" {
		namespace, err := c.Visible(ctx, q, who, at)

		return namespace.access, namespace.audit(), err
	}

	dataset, err := c.Allow(ctx, q, who, auth.Viewer, at)

	return dataset.access, dataset.Audit(), err
}

func mayLeave(who auth.Principal, target access, at Path) error {
	switch {
	case isRestricted(who):
		return fault.New(fault.Forbidden, "A restricted token cannot change who has access.")
	case auth.Editor.Exceeds(who.Ceiling()):
		return fault.New(fault.Forbidden, "The token in use allows viewer at most.")
	case target.account == who.Account:
		return fault.New(fault.InvalidState, "You own this, so there is no share that you could leave. To end the share of another person, send DELETE "+at.shares()+" with their username, or use quern unshare.")
	default:
		return nil
	}
}

// stillGranted returns the caller's grants on a target and on its namespace.
func (c Catalog) stillGranted(ctx context.Context, q postgres.Querier, who auth.Principal, target access) (list []Share, err error) {
	for _, on := range []access{target, {account: target.account, namespace: target.namespace}} {
		grants, err := selectGrants(ctx, q, on)
		if err != nil {
			return nil, err
		}

		mine, err := c.name(ctx, q, slices.DeleteFunc(grants, func(g grant) bool { return !slices.Contains(who.Subjects(), g.subject) }))
		if err != nil {
			return nil, err
		}

		slices.SortFunc(mine, func(a, b Share) int { return cmp.Compare(a.Grantee, b.Grantee) })

		for _, share := range mine {
			share.ViaNamespace = on.dataset == uuid.Nil && target.dataset != uuid.Nil
			list = append(list, share)
		}

		if target.dataset == uuid.Nil {
			break
		}
	}

	return list, nil
}

// noGrant says why the caller, who has access, has nothing to leave.
func noGrant(remaining []Share) error {
	through := make([]string, 0, len(remaining))

	for _, share := range remaining {
		switch {
		case !share.ViaNamespace:
			through = append(through, share.Grantee)
		case strings.HasPrefix(share.Grantee, "@"):
			through = append(through, "the share of the namespace with "+share.Grantee)
		default:
			through = append(through, "your share of the namespace")
		}
	}

	if len(through) == 0 {
		return fault.New(fault.InvalidState, "The namespace is not shared with you, only datasets in it. Leave those.")
	}

	return fault.New(fault.InvalidState, "You have no share of your own here. You have access through "+strings.Join(through, " and ")+".")
}
