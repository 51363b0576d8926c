package catalog

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Share is one line of the list of who may use something.
type Share struct {
	Grantee string // a username, or @ and the name of a group
	Role    auth.Role
	Pending bool // nobody has signed in with that username yet
}

// grant is a row of grants.
type grant struct {
	subject auth.Subject
	role    auth.Role
}

var granteePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._@+-]{0,127}$`)

const maxGroupRunes = 255

// grantee reads whom a request names, and returns every subject under which that name may stand: one who
// has signed in stands by account, and by name if the grant is older than the sign-in.
func (c Catalog) grantee(ctx context.Context, q postgres.Querier, who auth.Principal, name string) ([]auth.Subject, error) {
	if group, ok := strings.CutPrefix(name, "@"); ok {
		if group == "" || utf8.RuneCountInString(group) > maxGroupRunes {
			return nil, fault.Invalid("username", "is not the name of a group")
		}

		return []auth.Subject{{Kind: auth.SubjectGroup, ID: group}}, nil
	}

	name = strings.ToLower(name)
	if name == auth.Self || name == who.Username {
		return nil, fault.Invalid("username", "is yourself: what is yours needs no grant")
	}

	if !granteePattern.MatchString(name) {
		return nil, fault.Invalid("username", "is not a username that anybody can have")
	}

	byName := auth.Subject{Kind: auth.SubjectName, ID: name}

	account, err := selectAccountID(ctx, q, name)
	if err != nil || account == uuid.Nil {
		return []auth.Subject{byName}, err
	}

	return []auth.Subject{{Kind: auth.SubjectAccount, ID: account.String()}, byName}, nil
}

// shared is what a share operation is about: a namespace, or a dataset.
func (c Catalog) shared(ctx context.Context, q postgres.Querier, who auth.Principal, at Path) (access, audit.Target, error) {
	if at.Dataset == "" {
		namespace, err := c.allowNamespace(ctx, q, who, auth.Owner, at)

		return namespace.access, namespace.audit(), err
	}

	dataset, err := c.Allow(ctx, q, who, auth.Owner, at)

	return dataset.access, dataset.Audit(), err
}

// NewShare is a request to share with somebody. Sharing again replaces the role.
type NewShare struct {
	Grantee string
	Role    auth.Role
	Once    auth.Once
}

// Share lets a user or a group use a namespace or a dataset.
//
// Faults: NotFound, Forbidden, ValidationFailed for oneself or an impossible name.
func (c Catalog) Share(ctx context.Context, who auth.Principal, at Path, want NewShare) error {
	return c.DB.InTx(ctx, func(tx postgres.Tx) error {
		target, about, err := c.shared(ctx, tx, who, at)
		if err != nil {
			return err
		}

		subjects, err := c.grantee(ctx, tx, who, want.Grantee)
		if err != nil {
			return err
		}

		// Held until the grant is there, so that a delete at the same moment takes it along or comes first.
		if isLive, err := holdTarget(ctx, tx, &target); err != nil || !isLive {
			return orAbsent(err)
		}

		now := c.now()
		if _, repeated, err := want.Once.ClaimTx(ctx, tx, target.account, who, target.id(), now); err != nil || repeated {
			return err
		}

		// The first subject is the one that counts from now on; the others are older spellings of it.
		if _, err := deleteGrants(ctx, tx, target, subjects[1:]); err != nil {
			return err
		}

		if err := insertGrant(ctx, tx, target, grant{subject: subjects[0], role: want.Role}, now); err != nil {
			return err
		}

		entry := who.Audit(target.account, now, "share.grant", about)
		entry.Detail = want.Grantee + " " + string(want.Role)

		return audit.WriteTx(ctx, tx, entry)
	})
}

// Unshare takes a grant away. Grants on the datasets of a namespace stay as they are.
//
// Faults: NotFound also if there is no such grant, Forbidden.
func (c Catalog) Unshare(ctx context.Context, who auth.Principal, at Path, grantee string) error {
	return c.DB.InTx(ctx, func(tx postgres.Tx) error {
		target, about, err := c.shared(ctx, tx, who, at)
		if err != nil {
			return err
		}

		subjects, err := c.grantee(ctx, tx, who, grantee)
		if fault.Is(err, fault.ValidationFailed) {
			return fault.Absent() // nobody can have a grant under that name
		}

		if err != nil {
			return err
		}

		if isLive, err := holdTarget(ctx, tx, &target); err != nil || !isLive {
			return orAbsent(err)
		}

		if removed, err := deleteGrants(ctx, tx, target, subjects); err != nil || removed == 0 {
			return orAbsent(err)
		}

		entry := who.Audit(target.account, c.now(), "share.revoke", about)
		entry.Detail = grantee

		return audit.WriteTx(ctx, tx, entry)
	})
}

// Shares lists the grants on a namespace or a dataset itself, ordered by name.
func (c Catalog) Shares(ctx context.Context, who auth.Principal, at Path) (list []Share, err error) {
	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		target, _, err := c.shared(ctx, q, who, at)
		if err != nil {
			return err
		}

		grants, err := selectGrants(ctx, q, target)
		if err != nil {
			return err
		}

		list, err = c.name(ctx, q, grants)

		return err
	})

	slices.SortFunc(list, func(a, b Share) int { return cmp.Compare(a.Grantee, b.Grantee) })

	return list, err
}

// name shows grants by the names that their subjects have now.
func (c Catalog) name(ctx context.Context, q postgres.Querier, grants []grant) ([]Share, error) {
	var (
		accounts []uuid.UUID
		waiting  []string
	)

	for _, g := range grants {
		switch g.subject.Kind {
		case auth.SubjectAccount:
			accounts = append(accounts, uuid.MustParse(g.subject.ID))
		case auth.SubjectName:
			waiting = append(waiting, g.subject.ID)
		}
	}

	names, err := selectUsernames(ctx, q, accounts)
	if err != nil {
		return nil, err
	}

	taken, err := selectTakenNames(ctx, q, waiting)
	if err != nil {
		return nil, err
	}

	list := make([]Share, 0, len(grants))

	for _, g := range grants {
		share := Share{Grantee: g.subject.ID, Role: g.role}

		switch g.subject.Kind {
		case auth.SubjectAccount:
			share.Grantee = names[uuid.MustParse(g.subject.ID)]
		case auth.SubjectGroup:
			share.Grantee = "@" + g.subject.ID
		case auth.SubjectName:
			share.Pending = !slices.Contains(taken, g.subject.ID)
		}

		list = append(list, share)
	}

	return list, nil
}

// id is what a grant names.
func (a access) id() uuid.UUID {
	if a.dataset != uuid.Nil {
		return a.dataset
	}

	return a.namespace
}
