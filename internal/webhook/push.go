package webhook

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/event"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Push is a push notification config of A2A: an address that gets the status of one task when it changes. It is sent like an event of the run of the
// task. The body is the status, and the token and credentials of the client take the place of a signature.
type Push struct {
	ID          string // unique for the run
	URL         string
	Token       string // the receiver gets it in a header
	Scheme      string // of Credentials, such as Bearer
	Credentials string
}

const (
	maxPushes      = 10 // of one task
	maxPushID      = 128
	maxScheme      = 64
	maxCredentials = 4096

	pushType    = "application/a2a+json"
	tokenHeader = "A2A-Notification-Token"
)

// CheckPush returns ValidationFailed for a config to which nothing could be sent.
func (w *Webhooks) CheckPush(p Push) error {
	switch {
	case len(p.ID) > maxPushID || !isPrintable(p.ID):
		return fault.Invalid("id", fmt.Sprintf("may have at most %d printable ASCII characters", maxPushID))
	case len(p.Token) > maxCredentials || !isPrintable(p.Token):
		return fault.Invalid("token", fmt.Sprintf("may have at most %d printable ASCII characters", maxCredentials))
	case len(p.Scheme) > maxScheme || strings.ContainsFunc(p.Scheme, isNotScheme):
		return fault.Invalid("authentication.scheme", "is not the name of a scheme such as Bearer")
	case p.Scheme == "" && p.Credentials != "":
		return fault.Invalid("authentication.scheme", "is required")
	case len(p.Credentials) > maxCredentials || !isPrintable(p.Credentials):
		return fault.Invalid("authentication.credentials", fmt.Sprintf("may have at most %d printable ASCII characters", maxCredentials))
	default:
		return w.checkURL(p.URL)
	}
}

func isPrintable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsPrint(r) })
}

func isNotScheme(r rune) bool {
	return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.+", r)
}

// SetPush creates a config for a run, or replaces the one with the same id. Does not check access; callers must look up the run first. If the run has
// ended or waits for a choice, its status is sent at once.
//
// Faults: ValidationFailed, LimitExceeded.
func (w *Webhooks) SetPush(ctx context.Context, who auth.Principal, run uuid.UUID, p Push) (Push, error) {
	if p.ID == "" {
		p.ID = uuid.Must(uuid.NewV7()).String()
	}

	if err := w.CheckPush(p); err != nil {
		return Push{}, err
	}

	made := Webhook{
		Account: who.Account, ID: pushKey(run, p.ID), Token: who.Holder().Token, URL: p.URL, Status: Active, CreatedAt: w.now(), check: []byte{}, run: run, pushID: p.ID,
	}

	var err error
	if made.sealed, err = w.seal(made.ID, p); err != nil {
		return Push{}, err
	}

	return p, w.DB.InTx(ctx, func(tx postgres.Tx) error { return w.setPushTx(ctx, tx, who, made) })
}

// pushKey returns the id of the webhook that stores a config.
func pushKey(run uuid.UUID, id string) uuid.UUID { return uuid.NewSHA1(run, []byte("push "+id)) }

func (w *Webhooks) setPushTx(ctx context.Context, tx postgres.Tx, who auth.Principal, made Webhook) error {
	if err := deleteWebhook(ctx, tx, made); err != nil {
		return err
	}

	if count, err := countWebhooks(ctx, tx, made.Account, made.run); err != nil || count >= maxPushes {
		if err == nil {
			err = fault.New(fault.LimitExceeded, fmt.Sprintf("The task has %d push notification configs, which is the maximum. Delete one first.", count))
		}

		return err
	}

	if err := insertWebhook(ctx, tx, made, []uuid.UUID{made.run}); err != nil {
		return err
	}

	// Later events find the new webhook. An earlier event did not, so its delivery is added here.
	last, err := event.LastOfRunTx(ctx, tx, made.Account, made.run)
	if err != nil {
		return err
	}

	if last != nil {
		if err := insertDeliveries(ctx, tx, []addressed{{made, *last}}); err != nil {
			return err
		}
	}

	return audit.WriteTx(ctx, tx, who.Audit(who.Account, made.CreatedAt, "push.set", made.audit()))
}

// Pushes returns the configs of a run, without credentials. Does not check access; callers must look up the run first.
func (w *Webhooks) Pushes(ctx context.Context, who auth.Principal, run uuid.UUID) (list []Push, err error) {
	err = w.DB.Do(ctx, func(q postgres.Querier) error {
		found, err := selectWebhooks(ctx, q, who.Account, run, uuid.Nil, maxPushes)
		if err != nil {
			return err
		}

		list = nil

		for _, k := range found {
			p, err := w.open(k)
			if err != nil {
				return err
			}

			p.Credentials = ""
			list = append(list, p)
		}

		return nil
	})

	return list, err
}

// DeletePush deletes a config of a run. Does not check access; callers must look up the run first.
//
// Faults: NotFound.
func (w *Webhooks) DeletePush(ctx context.Context, who auth.Principal, run uuid.UUID, id string) error {
	return w.DB.InTx(ctx, func(tx postgres.Tx) error {
		found, err := lockWebhook(ctx, tx, who.Account, pushKey(run, id))
		if err == nil && found == nil {
			err = fault.Absent()
		}

		if err != nil {
			return err
		}

		if err := deleteWebhook(ctx, tx, *found); err != nil {
			return err
		}

		return audit.WriteTx(ctx, tx, who.Audit(who.Account, w.now(), "push.delete", found.audit()))
	})
}

// ForgetRunsTx deletes the configs of runs, in the transaction that deletes the runs.
func (w *Webhooks) ForgetRunsTx(ctx context.Context, tx postgres.Tx, account uuid.UUID, runs []uuid.UUID) error {
	found, err := lockPushes(ctx, tx, account, runs)
	if err != nil {
		return err
	}

	return deleteAll(ctx, tx, found)
}

// push sends the status of a task to the address of a config.
func (s *sender) push(ctx context.Context, k Webhook, body []byte) (status int, problem string) {
	p, err := s.open(k)
	if err != nil {
		return 0, problemSecret
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, k.URL, bytes.NewReader(body))
	if err != nil {
		return 0, problemConnect
	}

	request.Header.Set("Content-Type", pushType)

	if p.Token != "" {
		request.Header.Set(tokenHeader, p.Token)
	}

	if p.Credentials != "" {
		request.Header.Set("Authorization", p.Scheme+" "+p.Credentials)
	}

	return s.do(request)
}
