package webhook

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/event"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/feed"
	"quern.dev/quern/internal/postgres"
)

// Config configures Webhooks.
type Config struct {
	DB          *postgres.DB
	Catalog     catalog.Catalog
	Credentials auth.Credentials
	Log         *slog.Logger
	Now         func() time.Time

	Secret       []byte         // from which the secrets of webhooks are derived
	Allowed      []netip.Prefix // networks that may be reached although they are not public
	Transport    *http.Transport
	Timeout      time.Duration // of one request
	Senders      int           // requests at once; 0: none
	First        time.Duration // pause after the first failure, doubled after each further one
	RetryTime    time.Duration // how long a delivery is tried
	DisableAfter time.Duration // how long a webhook may only fail

	// Notify returns the state of the task of a run as the caller may see it now, for push notifications.
	Notify func(ctx context.Context, who auth.Principal, run uuid.UUID) ([]byte, error)
}

// Webhooks keeps webhooks and sends to them.
type Webhooks struct {
	Config

	sender *sender
}

// New returns Webhooks.
func New(c Config) *Webhooks {
	w := &Webhooks{Config: c}
	w.sender = newSender(w)

	return w
}

// Status is the state of a webhook.
type Status string

const (
	Active   Status = "active"
	Paused   Status = "paused"   // by its owner; what happens meanwhile is not sent later
	Disabled Status = "disabled" // by the service; see Reason
)

// Webhook is an address to which events are sent.
type Webhook struct {
	Account      uuid.UUID
	ID           uuid.UUID
	Token        uuid.UUID // the API token that made it, or uuid.Nil
	URL          string
	Types        []event.Type // empty: all
	At           *catalog.Path
	Status       Status
	Reason       string
	OldUntil     time.Time // until then the secret before signs too
	FailingSince time.Time
	CreatedAt    time.Time

	scopeAccount, scopeSpace, scopeDataset uuid.UUID
	version                                int
	check                                  []byte
	// Only of push notifications.
	run    uuid.UUID
	pushID string
	sealed []byte
}

// isPush reports whether the webhook is the push notifications of a task, which the client of the task manages.
func (k Webhook) isPush() bool { return k.run != uuid.Nil }

const (
	maxWebhooks = 500
	maxURL      = 2000
	// overlap is how long the secret before signs too after a rotation.
	overlap = 24 * time.Hour
)

// Want is a request for a webhook.
type Want struct {
	URL   string
	Types []event.Type
	At    *catalog.Path // a namespace or a dataset; nil: what concerns the caller
	Once  auth.Once
}

// mayRead refuses restricted tokens: a webhook is about the whole account.
func mayRead(who auth.Principal) error {
	if who.Token != nil && who.Token.Restricted {
		return fault.New(fault.Forbidden, "A restricted token cannot use webhooks. Use GET /events, or a token without restrictions.")
	}

	return nil
}

// mayChange also refuses tokens that only read.
func mayChange(who auth.Principal) error { return cmp.Or(mayRead(who), who.RequireEditor()) }

// checkURL returns ValidationFailed for an address to which nothing could be sent.
func (w *Webhooks) checkURL(text string) error {
	address, err := url.Parse(text)

	switch {
	case err != nil || address.Host == "" || address.Hostname() == "" || len(text) > maxURL:
		return fault.Invalid("url", "is not an address such as https://example.com/hooks/quern")
	case address.Scheme != "https" && (address.Scheme != "http" || len(w.Allowed) == 0):
		return fault.Invalid("url", "must begin with https://")
	case address.User != nil:
		return fault.Invalid("url", "has a username; receivers check the signature instead")
	case address.Fragment != "":
		return fault.Invalid("url", "has a fragment, which is never sent")
	}

	if literal, err := netip.ParseAddr(address.Hostname()); err == nil && !w.sender.policy.Permits(literal) {
		return fault.Invalid("url", "is an address that is not public; the operator of the service can allow its network (QUERN_WEBHOOK_ALLOWED_NETWORKS)")
	}

	return nil
}

// Create makes a webhook and returns its secret.
//
// Faults: NotFound for a namespace or dataset that the caller may not see, ValidationFailed, Forbidden, Conflict, LimitExceeded.
func (w *Webhooks) Create(ctx context.Context, who auth.Principal, want Want) (made Webhook, secret string, err error) {
	if err := mayChange(who); err != nil {
		return Webhook{}, "", err
	}

	if err := w.checkURL(want.URL); err != nil {
		return Webhook{}, "", err
	}

	draft := Webhook{
		Account: who.Account, ID: uuid.Must(uuid.NewV7()), Token: who.Holder().Token, URL: want.URL, Types: want.Types, Status: Active, CreatedAt: w.now(), version: 1, sealed: []byte{},
	}
	draft.check = checkOf(w.secret(draft.ID, draft.version))

	err = w.DB.InTx(ctx, func(tx postgres.Tx) error {
		first, repeated, err := want.Once.ClaimTx(ctx, tx, who.Account, who, draft.ID, draft.CreatedAt)
		if err != nil {
			return err
		}

		if !repeated {
			if err := w.createTx(ctx, tx, who, &draft, want.At); err != nil {
				return err
			}
		}

		made, err = w.get(ctx, tx, who, first)

		return err
	})
	if err == nil {
		err = w.name(ctx, who, &made)
	}

	if err != nil {
		return Webhook{}, "", err
	}

	return made, shownSecret(w.secret(made.ID, made.version)), nil
}

func (w *Webhooks) createTx(ctx context.Context, tx postgres.Tx, who auth.Principal, draft *Webhook, at *catalog.Path) (err error) {
	logs := feed.Inboxes(who)

	if at != nil {
		draft.scopeAccount, draft.scopeSpace, draft.scopeDataset, err = feed.Resolve(ctx, tx, w.Catalog, who, *at)
		if err != nil {
			return err
		}

		logs = []uuid.UUID{draft.scopeAccount}
	}

	slices.SortFunc(logs, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })

	if count, err := countWebhooks(ctx, tx, who.Account, uuid.Nil); err != nil || count >= maxWebhooks {
		if err == nil {
			err = fault.New(fault.LimitExceeded, fmt.Sprintf("You have %d webhooks, which is the maximum. Delete one first.", count))
		}

		return err
	}

	if err := insertWebhook(ctx, tx, *draft, slices.Compact(logs)); err != nil {
		return err
	}

	return audit.WriteTx(ctx, tx, who.Audit(who.Account, draft.CreatedAt, "webhook.create", draft.audit()))
}

func (k Webhook) audit() audit.Target { return audit.Target{Kind: "webhook", ID: k.ID.String()} }

func (w *Webhooks) now() time.Time { return w.Now().UTC().Truncate(time.Millisecond) }

// get returns a webhook of the caller.
func (w *Webhooks) get(ctx context.Context, q postgres.Querier, who auth.Principal, id uuid.UUID) (Webhook, error) {
	found, err := selectWebhook(ctx, q, who.Account, id)
	if err == nil && (found == nil || found.isPush()) {
		err = fault.Absent()
	}

	if err != nil {
		return Webhook{}, err
	}

	return *found, nil
}

// name sets the current names of the scope, which stay empty if the caller may no longer see it.
func (w *Webhooks) name(ctx context.Context, who auth.Principal, k *Webhook) error {
	if k.scopeAccount == uuid.Nil {
		return nil
	}

	target := auth.Target{Kind: "namespace", Account: k.scopeAccount, ID: k.scopeSpace}
	if k.scopeDataset != uuid.Nil {
		target.Kind, target.ID = "dataset", k.scopeDataset
	}

	names, err := w.Catalog.Paths(ctx, who, []auth.Target{target})
	if err == nil && len(names) > 0 {
		k.At = &names[0]
	}

	return err
}

// Get returns a webhook of the caller.
//
// Faults: NotFound, Forbidden.
func (w *Webhooks) Get(ctx context.Context, who auth.Principal, id uuid.UUID) (found Webhook, err error) {
	if err := mayRead(who); err != nil {
		return Webhook{}, err
	}

	err = w.DB.Do(ctx, func(q postgres.Querier) error {
		found, err = w.get(ctx, q, who, id)

		return err
	})
	if err != nil {
		return Webhook{}, err
	}

	return found, w.name(ctx, who, &found)
}

// List returns the webhooks of the caller, oldest first.
//
// Faults: Forbidden.
func (w *Webhooks) List(ctx context.Context, who auth.Principal, after uuid.UUID, limit int) (list []Webhook, next uuid.UUID, err error) {
	if err := mayRead(who); err != nil {
		return nil, uuid.Nil, err
	}

	err = w.DB.Do(ctx, func(q postgres.Querier) error {
		list, err = selectWebhooks(ctx, q, who.Account, uuid.Nil, after, limit+1)

		return err
	})
	if err != nil {
		return nil, uuid.Nil, err
	}

	if len(list) > limit {
		list = list[:limit]
		next = list[limit-1].ID
	}

	for i := range list {
		if err := w.name(ctx, who, &list[i]); err != nil {
			return nil, uuid.Nil, err
		}
	}

	return list, next, nil
}

// Change is a change of a webhook. Nil means that something stays.
type Change struct {
	URL    *string
	Types  *[]event.Type
	Active *bool
}

// Update changes a webhook. Making it active again also ends Disabled.
//
// Faults: NotFound, Forbidden, ValidationFailed.
func (w *Webhooks) Update(ctx context.Context, who auth.Principal, id uuid.UUID, change Change) (Webhook, error) {
	if change.URL != nil {
		if err := w.checkURL(*change.URL); err != nil {
			return Webhook{}, err
		}
	}

	return w.change(ctx, who, id, "webhook.update", func(tx postgres.Tx, k *Webhook) error {
		if change.URL != nil {
			k.URL = *change.URL
		}

		if change.Types != nil {
			k.Types = *change.Types
		}

		if change.Active != nil {
			k.Status, k.Reason, k.FailingSince = Paused, "", time.Time{}
			if *change.Active {
				k.Status, k.Token = Active, who.Holder().Token
			}
		}

		if k.Status == Active {
			return nil
		}

		return forgetWaiting(ctx, tx, *k)
	})
}

// change changes a webhook of the caller in a transaction, with an audit entry.
func (w *Webhooks) change(ctx context.Context, who auth.Principal, id uuid.UUID, action string, do func(tx postgres.Tx, k *Webhook) error) (changed Webhook, err error) {
	if err := mayChange(who); err != nil {
		return Webhook{}, err
	}

	err = w.DB.InTx(ctx, func(tx postgres.Tx) error {
		found, err := lockWebhook(ctx, tx, who.Account, id)
		if err == nil && (found == nil || found.isPush()) {
			err = fault.Absent()
		}

		if err != nil {
			return err
		}

		if err := do(tx, found); err != nil {
			return err
		}

		if err := updateWebhook(ctx, tx, *found); err != nil {
			return err
		}

		if err := audit.WriteTx(ctx, tx, who.Audit(who.Account, w.now(), action, found.audit())); err != nil {
			return err
		}

		changed = *found

		return nil
	})
	if err != nil {
		return Webhook{}, err
	}

	return changed, w.name(ctx, who, &changed)
}

// Rotate gives a webhook a new secret. The one before signs too for a day.
//
// Faults: NotFound, Forbidden.
func (w *Webhooks) Rotate(ctx context.Context, who auth.Principal, id uuid.UUID) (changed Webhook, secret string, err error) {
	changed, err = w.change(ctx, who, id, "webhook.rotate", func(_ postgres.Tx, k *Webhook) error {
		k.version++
		k.check, k.OldUntil = checkOf(w.secret(k.ID, k.version)), w.now().Add(overlap)

		return nil
	})

	return changed, shownSecret(w.secret(id, changed.version)), err
}

// Delete deletes a webhook with its deliveries.
//
// Faults: NotFound, Forbidden.
func (w *Webhooks) Delete(ctx context.Context, who auth.Principal, id uuid.UUID) error {
	_, err := w.change(ctx, who, id, "webhook.delete", func(tx postgres.Tx, k *Webhook) error { return deleteWebhook(ctx, tx, *k) })

	return err
}

// Test writes an event that only this webhook gets, and returns its id.
//
// Faults: NotFound, Forbidden, InvalidState if the webhook is not active.
func (w *Webhooks) Test(ctx context.Context, who auth.Principal, id uuid.UUID) (sent uuid.UUID, err error) {
	_, err = w.change(ctx, who, id, "webhook.test", func(tx postgres.Tx, k *Webhook) error {
		if k.Status != Active {
			return fault.New(fault.InvalidState, "The webhook is not active. Make it active first.")
		}

		test := []event.Event{k.event(event.WebhookTest, w.now())}
		err := event.WriteTx(ctx, tx, test...)
		sent = test[0].ID

		return err
	})

	return sent, err
}

// event returns an event about the webhook.
func (k Webhook) event(what event.Type, now time.Time) event.Event {
	return event.Event{
		Account: k.Account, Type: what, At: now, Subject: event.Subject{Kind: event.KindWebhook, Account: k.Account, ID: k.ID}, Data: event.Data{WebhookID: &k.ID},
	}
}

// Delivery is one event for a webhook.
type Delivery struct {
	Seq       int64
	EventID   uuid.UUID
	Type      event.Type
	State     string
	Attempts  int
	Status    int // of the last answer; 0 if there was none
	Problem   string
	Latency   time.Duration
	CreatedAt time.Time
	TriedAt   time.Time

	log uuid.UUID
}

// Deliveries returns the deliveries of a webhook, newest first.
//
// Faults: NotFound, Forbidden.
func (w *Webhooks) Deliveries(ctx context.Context, who auth.Principal, id uuid.UUID, before int64, limit int) (list []Delivery, next int64, err error) {
	if err := mayRead(who); err != nil {
		return nil, 0, err
	}

	err = w.DB.Do(ctx, func(q postgres.Querier) error {
		if _, err := w.get(ctx, q, who, id); err != nil {
			return err
		}

		list, err = selectDeliveries(ctx, q, who.Account, id, before, limit+1)

		return err
	})

	if len(list) > limit {
		list = list[:limit]
		next = list[limit-1].Seq
	}

	return list, next, err
}
