package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/event"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/feed"
	"quern.dev/quern/internal/guard"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
)

// errLost means that another sender has the lane, or that the webhook is gone.
var errLost = errors.New("another sender has the lane")

const (
	lookEvery = 250 * time.Millisecond
	idleEvery = time.Second
	perHook   = 4 // lanes of one webhook that this process sends at once
	inARow    = 50
	maxPause  = time.Hour
	maxDouble = 20
)

// addressed is an event for a webhook.
type addressed struct {
	webhook Webhook
	event   event.Event
}

// Numbered adds events that have just got their numbers to the webhooks that want them, in the same transaction.
func (w *Webhooks) Numbered(ctx context.Context, tx postgres.Tx, events []event.Event) error {
	var logs []uuid.UUID
	for _, e := range events {
		logs = append(logs, e.Account)
		if e.Subject.Kind == event.KindRun {
			logs = append(logs, e.Subject.ID)
		}
	}

	listeners, err := selectListeners(ctx, tx, logs)
	if err != nil || len(listeners) == 0 {
		return err
	}

	var wanted []addressed

	for _, e := range events {
		for _, l := range listeners {
			if (l.log == e.Account || l.log == e.Subject.ID) && l.wants(e) {
				wanted = append(wanted, addressed{l.Webhook, e})
			}
		}
	}

	if len(wanted) == 0 {
		return nil
	}

	return insertDeliveries(ctx, tx, wanted)
}

// wants reports whether an event is for the webhook. A test is for one webhook only, whatever it selects.
func (k Webhook) wants(e event.Event) bool {
	switch {
	case e.Type == event.WebhookTest:
		return e.Subject.ID == k.ID
	case k.isPush():
		return e.Subject.Kind == event.KindRun && e.Subject.ID == k.run
	}

	return feed.Scope{Types: k.Types, Account: k.scopeAccount, Namespace: k.scopeSpace, Dataset: k.scopeDataset}.Has(e)
}

// sender sends what waits.
type sender struct {
	*Webhooks

	policy        guard.Policy
	secure, plain *http.Client
	lease         time.Duration

	mu   sync.Mutex
	busy map[uuid.UUID]int // lanes in progress, by webhook
	all  int
}

func newSender(w *Webhooks) *sender {
	s := &sender{Webhooks: w, policy: guard.New(w.Allowed), busy: map[uuid.UUID]int{}, lease: 3*w.Timeout + 10*time.Second}
	s.secure, s.plain = s.clients(w.Config)

	return s
}

// Run sends until ctx ends. It continues after errors of the database. A request that is on its way when ctx ends is given up; it is sent again.
func (w *Webhooks) Run(ctx context.Context) {
	var sending sync.WaitGroup

	defer sending.Wait()

	s, log := w.sender, job.Limited(w.Log)

	for w.Senders > 0 {
		lanes, err := s.claim(ctx)
		if err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "webhooks could not be read", "error", err)
		}

		for _, l := range lanes {
			sending.Go(func() {
				defer s.free(l)

				err := fault.Try(func() error { return s.work(ctx, &l) })
				if err != nil && !errors.Is(err, errLost) && ctx.Err() == nil {
					log.WarnContext(ctx, "a webhook could not be sent", "webhook", l.webhook, "error", err)
				}
			})
		}

		pause := idleEvery
		if len(lanes) > 0 {
			pause = lookEvery / 10
		} else if s.working() {
			pause = lookEvery
		}

		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

func (s *sender) working() bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.all > 0
}

// claim takes lanes that are due, as many as there are free senders.
func (s *sender) claim(ctx context.Context) (lanes []lane, err error) {
	s.mu.Lock()
	room, busy := s.Senders-s.all, []uuid.UUID{}

	for id, count := range s.busy {
		if count >= perHook {
			busy = append(busy, id)
		}
	}
	s.mu.Unlock()

	if room <= 0 {
		return nil, nil
	}

	err = s.DB.Do(ctx, func(q postgres.Querier) (err error) {
		lanes, err = claimLanes(ctx, q, uuid.New(), room, perHook, busy, s.lease)

		return err
	})
	if err != nil {
		return nil, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	for _, l := range lanes {
		s.busy[l.webhook]++
		s.all++
	}

	return lanes, nil
}

func (s *sender) free(l lane) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.all--

	if s.busy[l.webhook]--; s.busy[l.webhook] == 0 {
		delete(s.busy, l.webhook)
	}
}

// work sends the deliveries of a lane in order, until one fails or none waits. The lane goes on later if there are many.
func (s *sender) work(ctx context.Context, l *lane) error {
	for range inARow {
		var (
			k *Webhook
			d *Delivery
		)

		err := s.DB.Do(ctx, func(q postgres.Querier) (err error) {
			if k, err = selectWebhook(ctx, q, l.account, l.webhook); err == nil && k != nil {
				d, err = selectNext(ctx, q, *l)
			}

			return err
		})
		if err != nil {
			return err
		}

		if k == nil || d == nil {
			return s.end(ctx, *l)
		}

		if again, err := s.deliver(ctx, l, *k, *d); err != nil || !again {
			return err
		}
	}

	return s.DB.Do(ctx, func(q postgres.Querier) error { return postponeLane(ctx, q, *l, 0) })
}

// end removes an empty lane, or gives it back if something was added.
func (s *sender) end(ctx context.Context, l lane) error {
	return s.DB.Do(ctx, func(q postgres.Querier) error {
		if ended, err := endLane(ctx, q, l); err != nil || ended {
			return err
		}

		return postponeLane(ctx, q, l, 0)
	})
}

// deliver makes one attempt at a delivery, and records it. again is true if the next one of the lane may follow.
func (s *sender) deliver(ctx context.Context, l *lane, k Webhook, d Delivery) (again bool, err error) {
	body, problem, err := s.body(ctx, k, d)

	switch {
	case fault.Is(err, fault.Unauthorized):
		return false, s.disable(ctx, k, "The token or the account that made the webhook is no longer valid.")
	case err != nil:
		return false, err
	case body == nil && problem == "": // the maker of the webhook may not see it
		return true, s.record(ctx, l, func(tx postgres.Tx) error { return forgetDelivery(ctx, tx, *l, d) })
	}

	began := time.Now()

	if problem == "" {
		d.Status, problem = s.try(ctx, k, d, body)
	}

	if ctx.Err() != nil {
		return false, ctx.Err()
	}

	d.Attempts, d.Problem, d.Latency = d.Attempts+1, problem, time.Since(began)

	if problem == "" {
		d.State = "delivered"

		return true, s.DB.InTx(ctx, func(tx postgres.Tx) error {
			if err := endFailing(ctx, tx, *l); err != nil {
				return err
			}

			return s.recordTx(ctx, tx, l, d)
		})
	}

	return s.failed(ctx, l, k, d)
}

// try signs a body and sends it.
func (s *sender) try(ctx context.Context, k Webhook, d Delivery, body []byte) (status int, problem string) {
	if k.isPush() {
		return s.push(ctx, k, body)
	}

	secrets := [][]byte{s.secret(k.ID, k.version)}
	if !slices.Equal(checkOf(secrets[0]), k.check) {
		return 0, problemSecret
	}

	if k.OldUntil.After(s.Now()) {
		secrets = append(secrets, s.secret(k.ID, k.version-1))
	}

	return s.post(ctx, k, d.EventID.String(), body, secrets)
}

// failed records a failed attempt: the lane waits, unless the time is over.
func (s *sender) failed(ctx context.Context, l *lane, k Webhook, d Delivery) (again bool, err error) {
	over := s.Now().Sub(d.CreatedAt) >= s.RetryTime || d.Problem == problemGone
	if over {
		d.State = "failed"
	}

	var disable bool

	err = s.DB.InTx(ctx, func(tx postgres.Tx) error {
		if disable, err = beginFailing(ctx, tx, *l, s.DisableAfter); err != nil {
			return err
		}

		if err := s.recordTx(ctx, tx, l, d); err != nil || over {
			return err
		}

		return postponeLane(ctx, tx, *l, s.pause(d.Attempts))
	})

	switch {
	case err != nil:
		return false, err
	case d.Status == http.StatusGone:
		return false, s.disable(ctx, k, "The receiver answered 410: it wants no more.")
	case disable:
		return false, s.disable(ctx, k, "Every delivery has failed for "+s.DisableAfter.String()+".")
	default:
		return over, nil
	}
}

// pause returns how long to wait after an attempt: doubled each time, with some chance, so that receivers that were down are not met by all at once.
func (s *sender) pause(attempts int) time.Duration {
	pause := min(s.First<<min(attempts-1, maxDouble), maxPause)

	return pause + rand.N(pause/4+1) //nolint:gosec // no secret
}

func (s *sender) record(ctx context.Context, l *lane, do func(tx postgres.Tx) error) error {
	return s.DB.InTx(ctx, func(tx postgres.Tx) error {
		if err := fenceLane(ctx, tx, l, s.lease); err != nil {
			return err
		}

		return do(tx)
	})
}

func (s *sender) recordTx(ctx context.Context, tx postgres.Tx, l *lane, d Delivery) error {
	if err := fenceLane(ctx, tx, l, s.lease); err != nil {
		return err
	}

	return recordDelivery(ctx, tx, *l, d)
}

// body returns the event of a delivery as the maker of the webhook may see it now; nil without a problem if the maker may not see it.
func (s *sender) body(ctx context.Context, k Webhook, d Delivery) (body []byte, problem string, err error) {
	who, err := s.Credentials.Current(ctx, auth.Holder{Account: k.Account, Token: k.Token})
	if err != nil {
		return nil, "", err
	}

	if k.isPush() {
		body, err = s.Notify(ctx, who, k.run)
		if fault.Is(err, fault.NotFound) {
			return nil, "", nil
		}

		return body, "", err
	}

	var (
		found *event.Event
		shown []event.Event
	)

	err = s.DB.Do(ctx, func(q postgres.Querier) (err error) {
		if found, err = event.Get(ctx, q, d.log, d.Seq); err == nil && found != nil {
			shown, err = feed.Reveal(ctx, q, s.Catalog, who, []event.Event{*found})
		}

		return err
	})

	switch {
	case err != nil:
		return nil, "", err
	case found == nil:
		return nil, problemGone, nil
	case len(shown) == 0:
		return nil, "", nil
	}

	body, err = json.Marshal(shown[0].Notice())

	return body, "", err
}

// disable ends a webhook that cannot go on, and tells its owner.
func (s *sender) disable(ctx context.Context, k Webhook, reason string) error {
	return s.DB.InTx(ctx, func(tx postgres.Tx) error {
		found, err := lockWebhook(ctx, tx, k.Account, k.ID)
		if err != nil || found == nil || found.Status != Active {
			return err
		}

		if found.isPush() {
			return deleteWebhook(ctx, tx, *found)
		}

		found.Status, found.Reason = Disabled, reason

		if err := updateWebhook(ctx, tx, *found); err != nil {
			return err
		}

		if err := forgetWaiting(ctx, tx, *found); err != nil {
			return err
		}

		now := s.now()
		entry := audit.Entry{Account: k.Account, At: now, Actor: audit.Operator, Action: "webhook.disable", Target: k.audit(), Detail: reason}

		if err := audit.WriteTx(ctx, tx, entry); err != nil {
			return err
		}

		return event.WriteTx(ctx, tx, found.event(event.WebhookDisabled, now))
	})
}
