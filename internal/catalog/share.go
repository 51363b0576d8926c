package catalog

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/event"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Share is one grant on a namespace or dataset, as shown in a list.
type Share struct {
	Grantee string // a username, or @ and the name of a group
	Role    auth.Role
	Pending bool // no account has that username yet
	// ViaNamespace means that the grant is on the namespace of the dataset.
	ViaNamespace bool
}

// grant is a row of the table grants.
type grant struct {
	subject auth.Subject
	role    auth.Role
}

var granteePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._@+-]{0,127}$`)

const maxGroupRunes = 255

// Grantee returns every subject that a name in a request may mean. For a user who has signed in these are the
// account, which receives a grant, and the username in case a grant is older than the sign-in.
//
// Faults: ValidationFailed if the name is that of the caller or not valid.
func (c Catalog) Grantee(ctx context.Context, q postgres.Querier, who auth.Principal, name string) ([]auth.Subject, error) {
	if group, ok := strings.CutPrefix(name, "@"); ok {
		if group == "" || utf8.RuneCountInString(group) > maxGroupRunes {
			return nil, fault.Invalid("username", "is not a valid group name")
		}

		return []auth.Subject{{Kind: auth.SubjectGroup, ID: group}}, nil
	}

	name = strings.ToLower(name)
	if name == auth.Self || name == who.Username {
		return nil, fault.Invalid("username", "is your own username; give that of another person, because an owner needs no share")
	}

	if !granteePattern.MatchString(name) {
		return nil, fault.Invalid("username", "is not a valid username")
	}

	byName := auth.Subject{Kind: auth.SubjectName, ID: name}

	account, err := selectAccountID(ctx, q, name)
	if err != nil || account == uuid.Nil {
		return []auth.Subject{byName}, err
	}

	return []auth.Subject{{Kind: auth.SubjectAccount, ID: account.String()}, byName}, nil
}

// shared returns the namespace or dataset that a share operation is about.
func (c Catalog) shared(ctx context.Context, q postgres.Querier, who auth.Principal, at Path) (access, audit.Target, error) {
	if at.Dataset == "" {
		namespace, err := c.allowNamespace(ctx, q, who, auth.Owner, at)

		return namespace.access, namespace.audit(), err
	}

	dataset, err := c.Allow(ctx, q, who, auth.Owner, at)

	return dataset.access, dataset.Audit(), err
}

// NewShare is a request to share with a user or a group. Sharing again replaces the role.
type NewShare struct {
	Grantee string
	Role    auth.Role
	Once    auth.Once
}

// Share grants a role on a namespace or a dataset to a user or a group.
//
// Faults: NotFound, Forbidden, ValidationFailed if the grantee is the caller or the name is not valid.
func (c Catalog) Share(ctx context.Context, who auth.Principal, at Path, want NewShare) error {
	return c.DB.InTx(ctx, func(tx postgres.Tx) error {
		target, about, err := c.shared(ctx, tx, who, at)
		if err != nil {
			return err
		}

		subjects, err := c.Grantee(ctx, tx, who, want.Grantee)
		if err != nil {
			return err
		}

		// Lock the target until the grant is committed, so that a concurrent delete either finds the grant or comes
		// first.
		if isLive, err := holdTarget(ctx, tx, &target); err != nil || !isLive {
			return orAbsent(err)
		}

		now := c.now()
		if _, repeated, err := want.Once.ClaimTx(ctx, tx, target.account, who, target.id(), now); err != nil || repeated {
			return err
		}

		// The first subject receives the grant; the others are subjects that earlier grants to the same name may
		// have.
		if _, err := deleteGrants(ctx, tx, target, subjects[1:]); err != nil {
			return err
		}

		if err := insertGrant(ctx, tx, target, grant{subject: subjects[0], role: want.Role}, now); err != nil {
			return err
		}

		entry := who.Audit(target.account, now, "share.grant", about)
		entry.Detail = want.Grantee + " " + string(want.Role)

		if err := audit.WriteTx(ctx, tx, entry); err != nil {
			return err
		}

		told := shareEvent(target, about, event.DatasetShared, event.NamespaceShared, now)
		told.Data.Grantee, told.Data.Role = want.Grantee, string(want.Role)
		theirs := told
		theirs.Account = event.Inbox(subjects[0].Kind, subjects[0].ID)

		return event.WriteTx(ctx, tx, told, theirs)
	})
}

// Unshare deletes a grant. Grants on the datasets of a namespace do not change.
//
// Faults: NotFound also if the grant does not exist, Forbidden.
func (c Catalog) Unshare(ctx context.Context, who auth.Principal, at Path, grantee string) error {
	return c.DB.InTx(ctx, func(tx postgres.Tx) error {
		target, about, err := c.shared(ctx, tx, who, at)
		if err != nil {
			return err
		}

		subjects, err := c.Grantee(ctx, tx, who, grantee)
		if fault.Is(err, fault.ValidationFailed) {
			return noShare(at, grantee) // no grant can have that name
		}

		if err != nil {
			return err
		}

		if isLive, err := holdTarget(ctx, tx, &target); err != nil || !isLive {
			return orAbsent(err)
		}

		removed, err := deleteGrants(ctx, tx, target, subjects)
		if err == nil && removed == 0 {
			err = noShare(at, grantee)
		}

		if err != nil {
			return err
		}

		now := c.now()
		entry := who.Audit(target.account, now, "share.revoke", about)
		entry.Detail = grantee

		if err := audit.WriteTx(ctx, tx, entry); err != nil {
			return err
		}

		// The grantee gets no event about something that they may no longer see.
		told := shareEvent(target, about, event.DatasetUnshared, event.NamespaceUnshared, now)
		told.Data.Grantee = grantee

		return event.WriteTx(ctx, tx, told)
	})
}

// shareEvent returns an event about the grants on a dataset or on a namespace, in the log of the owner.
func shareEvent(target access, about audit.Target, ofDataset, ofNamespace event.Type, now time.Time) event.Event {
	e := event.Event{
		Account: target.account, Type: ofNamespace, At: now,
		Subject: event.Subject{Kind: event.KindNamespace, Account: target.account, ID: target.id(), Namespace: target.namespace},
		Data:    event.Data{Namespace: about.Namespace, Dataset: about.Dataset},
	}

	if target.dataset != uuid.Nil {
		e.Type, e.Subject.Kind, e.Data.DatasetID = ofDataset, event.KindDataset, &target.dataset
	}

	return e
}

// noShare returns the fault for a grant that does not exist. Only the owner gets it.
func noShare(at Path, grantee string) error {
	return fault.New(fault.NotFound, fmt.Sprintf("%q has no share here that could be revoked. GET %s lists the shares.", grantee, at.shares()))
}

// shares returns the address of the shares of a namespace or a dataset.
func (p Path) shares() string {
	if p.Dataset == "" {
		return fmt.Sprintf("/permissions/namespaces/%s/%s/shares", p.Username, p.Namespace)
	}

	return fmt.Sprintf("/permissions/datasets/%s/%s/%s/shares", p.Username, p.Namespace, p.Dataset)
}

// Shares lists the grants on a namespace, or those on a dataset and on its namespace, ordered by name. A user with both has
// two entries.
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

		if list, err = c.name(ctx, q, grants); err != nil || at.Dataset == "" {
			return err
		}

		if grants, err = selectGrants(ctx, q, access{account: target.account, namespace: target.namespace}); err != nil {
			return err
		}

		above, err := c.name(ctx, q, grants)
		for _, share := range above {
			share.ViaNamespace = true
			list = append(list, share)
		}

		return err
	})

	slices.SortStableFunc(list, func(a, b Share) int { return cmp.Compare(a.Grantee, b.Grantee) })

	return list, err
}

// name returns grants with the current names of their subjects.
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

// Grantees returns the current names of subjects, as shares without a role, ordered by name.
func (c Catalog) Grantees(ctx context.Context, q postgres.Querier, subjects []auth.Subject) ([]Share, error) {
	grants := make([]grant, len(subjects))
	for n, subject := range subjects {
		grants[n].subject = subject
	}

	list, err := c.name(ctx, q, grants)
	slices.SortFunc(list, func(a, b Share) int { return cmp.Compare(a.Grantee, b.Grantee) })

	return list, err
}

// Usernames returns the current usernames of accounts.
func (c Catalog) Usernames(ctx context.Context, q postgres.Querier, accounts []uuid.UUID) (map[uuid.UUID]string, error) {
	return selectUsernames(ctx, q, accounts)
}

// id returns the id that a grant names.
func (a access) id() uuid.UUID {
	if a.dataset != uuid.Nil {
		return a.dataset
	}

	return a.namespace
}
