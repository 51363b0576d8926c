package feed

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/connection"
	"quern.dev/quern/internal/event"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Config configures a Feed.
type Config struct {
	DB          *postgres.DB
	Catalog     catalog.Catalog
	Credentials auth.Credentials
	Log         *slog.Logger
	Now         func() time.Time
	// Numbered is called with events that have just got their numbers, in the same transaction.
	Numbered func(ctx context.Context, tx postgres.Tx, events []event.Event) error
}

// Feed gives events to callers.
type Feed struct {
	Config

	hub *hub
}

// New returns a Feed.
func New(c Config) *Feed {
	return &Feed{Config: c, hub: &hub{db: c.DB, log: c.Log, credentials: c.Credentials, numbered: c.Numbered, wake: make(chan struct{}, 1), streams: map[*Stream]struct{}{}}}
}

// Filter selects events. The zero Filter selects all.
type Filter struct {
	Types []event.Type
	At    *catalog.Path // a namespace or a dataset
}

// Scope is a Filter whose names are resolved.
type Scope struct {
	Types              []event.Type
	Account            uuid.UUID // uuid.Nil: every account
	Namespace, Dataset uuid.UUID // Dataset is uuid.Nil for a namespace
}

// Has reports whether the scope selects an event.
func (s Scope) Has(e event.Event) bool {
	switch {
	case len(s.Types) > 0 && !slices.Contains(s.Types, e.Type):
		return false
	case s.Account == uuid.Nil:
		return true
	case s.Dataset != uuid.Nil:
		return e.Subject.Account == s.Account && e.Subject.ID == s.Dataset
	default:
		return e.Subject.Account == s.Account && e.Subject.Namespace == s.Namespace
	}
}

// Resolve returns the ids of a namespace or a dataset that the caller may see.
//
// Faults: NotFound.
func Resolve(ctx context.Context, q postgres.Querier, c catalog.Catalog, who auth.Principal, at catalog.Path) (account, namespace, dataset uuid.UUID, err error) {
	if at.Dataset == "" {
		found, err := c.Visible(ctx, q, who, at)

		return found.Account, found.ID, uuid.Nil, err
	}

	found, err := c.Allow(ctx, q, who, auth.Viewer, at)

	return found.Account, found.NamespaceID, found.ID, err
}

func (f *Feed) scope(ctx context.Context, q postgres.Querier, who auth.Principal, filter Filter) (s Scope, err error) {
	s.Types = filter.Types

	if filter.At != nil {
		s.Account, s.Namespace, s.Dataset, err = Resolve(ctx, q, f.Catalog, who, *filter.At)
	}

	return s, err
}

// maxSharers limits the accounts whose events a stream reads beside those of its caller.
const maxSharers = 10_000

// logs returns the logs in which events for the caller may be.
func (f *Feed) logs(ctx context.Context, q postgres.Querier, who auth.Principal, s Scope) ([]uuid.UUID, error) {
	logs := Inboxes(who)

	if s.Account != uuid.Nil {
		logs = append(logs, s.Account)
	} else {
		sharers, err := f.Catalog.Sharers(ctx, q, who, maxSharers)
		if err != nil {
			return nil, err
		}

		logs = append(logs, sharers...)
	}

	slices.SortFunc(logs, compare)

	return slices.Compact(logs), nil
}

// Inboxes returns the logs of what concerns the caller.
func Inboxes(who auth.Principal) (logs []uuid.UUID) {
	for _, subject := range who.Subjects() {
		logs = append(logs, event.Inbox(subject.Kind, subject.ID))
	}

	return logs
}

// Reveal returns those of the events that the caller may see now.
func Reveal(ctx context.Context, q postgres.Querier, c catalog.Catalog, who auth.Principal, events []event.Event) (shown []event.Event, err error) {
	var (
		mine       = Inboxes(who)
		datasets   = map[uuid.UUID][]uuid.UUID{} // by account
		namespaces = map[uuid.UUID][]uuid.UUID{}
		connected  []uuid.UUID
		seen       = map[uuid.UUID]bool{}
		names      = map[uuid.UUID]string{}
	)

	for _, e := range events {
		switch e.Subject.Kind {
		case event.KindDataset:
			datasets[e.Subject.Account] = append(datasets[e.Subject.Account], e.Subject.ID)
		case event.KindNamespace:
			namespaces[e.Subject.Account] = append(namespaces[e.Subject.Account], e.Subject.ID)
		case event.KindConnection:
			connected = append(connected, e.Subject.ID)
		}
	}

	for account, ids := range datasets {
		found, err := c.Seen(ctx, q, who, account, ids)
		if err != nil {
			return nil, err
		}

		for _, d := range found {
			seen[d.ID] = true
		}
	}

	for account, ids := range namespaces {
		found, err := c.SeenNamespaces(ctx, q, who, account, ids)
		if err != nil {
			return nil, err
		}

		for _, n := range found {
			seen[n.ID], names[n.ID] = true, n.Name
		}
	}

	if len(connected) > 0 {
		found, err := connection.Granted(ctx, q, who, connected)
		if err != nil {
			return nil, err
		}

		for _, id := range found {
			seen[id] = true
		}
	}

	for _, e := range events {
		if !mayKnow(who, mine, seen, e) {
			continue
		}

		if e.Data.Namespace == "" {
			e.Data.Namespace = names[e.Subject.ID]
		}

		shown = append(shown, e)
	}

	return shown, nil
}

// mayKnow decides about one event. mine are the caller's inboxes, and seen are the things that the caller may see.
func mayKnow(who auth.Principal, mine []uuid.UUID, seen map[uuid.UUID]bool, e event.Event) bool {
	restricted := who.Token != nil && who.Token.Restricted

	switch {
	case e.Subject.Kind == event.KindRun: // as with the run itself
		return e.Account == who.Account && (!restricted || e.Token == who.Token.ID)
	case e.Type.IsShare() && !slices.Contains(mine, e.Account):
		return false // with whom others share is not the caller's business
	case e.Type.IsShare() && restricted:
		return false // it would tell about grants, which the token cannot list
	case seen[e.Subject.ID]:
		return true
	default: // a dataset that is still being loaded for the first time, or one that was deleted
		return e.Subject.Account == who.Account && !restricted
	}
}

// position returns the position of a new stream: after the given number, or at the end of the log if it is 0.
//
// Faults: ValidationFailed for a number whose followers may have been dropped.
func (f *Feed) position(head, after int64) (int64, error) {
	switch {
	case after == 0, after > head:
		return head, nil
	case after < event.Oldest(f.Now()):
		return 0, fault.Invalid("Last-Event-ID", "is older than the events that are kept (7 days), so some may be missing; read the current state, and follow without Last-Event-ID")
	default:
		return after, nil
	}
}
