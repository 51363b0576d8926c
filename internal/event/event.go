// Package event records what happened to datasets, namespaces, runs, sources and connections, so that people and programs can be told.
//
// An event is written in the transaction in which it happened, so neither exists without the other. It gets its number after the commit:
//
//	WriteTx            commit        Number                    Drop
//	change ──────────▶ new_events ──────────────▶ events ───────────────▶ gone
//
// Invariants:
//   - An event is visible under its number only when every event with a lower number is. A reader that has read up to a number has missed nothing.
//   - Two events of the same thing whose transactions followed one another have numbers in that order.
//   - An event has names, ids and figures. It never has the value of a cell, nor a text that may quote one.
package event

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/postgres"
)

// Type is what happened.
type Type string

const (
	Loaded            Type = "dataset.loaded"
	LoadFailed        Type = "dataset.loadFailed"
	LoadWaiting       Type = "dataset.loadWaiting"
	ColumnsChanged    Type = "dataset.columnsChanged"
	RowsDeleted       Type = "dataset.rowsDeleted"
	DatasetShared     Type = "dataset.shared"
	DatasetUnshared   Type = "dataset.unshared"
	NamespaceShared   Type = "namespace.shared"
	NamespaceUnshared Type = "namespace.unshared"
	VerifiedSuspended Type = "verified.suspended"
	RunCompleted      Type = "run.completed"
	RunFailed         Type = "run.failed"
	RunCancelled      Type = "run.cancelled"
	RunWaiting        Type = "run.waiting"
	SourceStopped     Type = "source.stopped"
	SourceFailed      Type = "source.failed"

	ConnectionShared   Type = "connection.shared"
	ConnectionUnshared Type = "connection.unshared"

	WebhookTest     Type = "webhook.test"
	WebhookDisabled Type = "webhook.disabled"
)

// Types returns all types.
func Types() []Type {
	return []Type{
		Loaded, LoadFailed, LoadWaiting, ColumnsChanged, RowsDeleted, DatasetShared, DatasetUnshared, NamespaceShared, NamespaceUnshared, VerifiedSuspended,
		RunCompleted, RunFailed, RunCancelled, RunWaiting, SourceStopped, SourceFailed, ConnectionShared, ConnectionUnshared, WebhookTest, WebhookDisabled,
	}
}

// IsShare reports whether the event says with whom something is shared. Only the owner and the grantee may know.
func (t Type) IsShare() bool {
	switch t {
	case DatasetShared, DatasetUnshared, NamespaceShared, NamespaceUnshared, ConnectionShared, ConnectionUnshared:
		return true
	default:
		return false
	}
}

// The kinds of things that events are about.
const (
	KindDataset    = "dataset"
	KindNamespace  = "namespace"
	KindRun        = "run"
	KindWebhook    = "webhook"
	KindSource     = "source"
	KindConnection = "connection"
)

// Event is one event.
type Event struct {
	Seq     int64     // its number; 0 before it has one
	Account uuid.UUID // the log in which it is: an account, or an Inbox
	ID      uuid.UUID
	Type    Type
	At      time.Time
	Subject Subject
	Token   uuid.UUID // the API token that started the run, or uuid.Nil
	Data    Data
}

// Subject is the thing that an event is about.
type Subject struct {
	Kind      string
	Account   uuid.UUID // its owner
	ID        uuid.UUID
	Namespace uuid.UUID // of a dataset or a namespace; uuid.Nil if there is none yet
}

// Data is what an event tells. The names are those that its subject had then.
type Data struct {
	Username       string     `json:"username,omitempty"` // of the owner; set when it is read, if it is empty
	Namespace      string     `json:"namespace,omitempty"`
	Dataset        string     `json:"dataset,omitempty"`
	DatasetID      *uuid.UUID `json:"datasetId,omitempty"`
	IngestionID    *uuid.UUID `json:"ingestionId,omitempty"`
	SnapshotID     *uuid.UUID `json:"snapshotId,omitempty"`
	Mode           string     `json:"mode,omitempty"`
	Rows           *int64     `json:"rows,omitempty"`
	RowsSetAside   *int64     `json:"rowsSetAside,omitempty"`
	Code           string     `json:"code,omitempty"`
	Doubts         []string   `json:"doubts,omitempty"`
	Columns        *Columns   `json:"columns,omitempty"`
	Grantee        string     `json:"grantee,omitempty"`
	Role           string     `json:"role,omitempty"`
	VerifiedID     *uuid.UUID `json:"verifiedId,omitempty"`
	RunID          *uuid.UUID `json:"runId,omitempty"`
	ConversationID *uuid.UUID `json:"conversationId,omitempty"`
	Agent          string     `json:"agent,omitempty"`
	WebhookID      *uuid.UUID `json:"webhookId,omitempty"`
	SourceID       *uuid.UUID `json:"sourceId,omitempty"`
	Source         string     `json:"source,omitempty"`     // its name
	Connection     string     `json:"connection,omitempty"` // its name
	ConnectionID   *uuid.UUID `json:"connectionId,omitempty"`
}

// Notice is an event as it is told to people and programs, on streams and by webhooks.
type Notice struct {
	ID        uuid.UUID `json:"id"`
	Type      Type      `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      Data      `json:"data"`
}

// Notice returns the event as it is told.
func (e Event) Notice() Notice {
	return Notice{ID: e.ID, Type: e.Type, Timestamp: e.At.UTC(), Data: e.Data}
}

// Columns are the names of the columns that changed.
type Columns struct {
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	Retyped []string `json:"retyped"`
}

// Inbox returns the log of what concerns a subject of grants: the account itself, or an id that stands for a group or for a name that
// nobody has yet.
func Inbox(kind, id string) uuid.UUID {
	if account, err := uuid.Parse(id); err == nil && kind == "account" {
		return account
	}

	return uuid.NewSHA1(uuid.NameSpaceOID, []byte("events of "+kind+" "+id))
}

// WriteTx writes events in the transaction in which they happened.
func WriteTx(ctx context.Context, tx postgres.Tx, events ...Event) error {
	for i := range events {
		events[i].ID, events[i].At = uuid.Must(uuid.NewV7()), events[i].At.UTC().Truncate(time.Millisecond)
	}

	if len(events) == 0 {
		return nil
	}

	return insert(ctx, tx, events)
}

// ForgetRunsTx removes the events of runs that are deleted, in the same transaction.
func ForgetRunsTx(ctx context.Context, tx postgres.Tx, account uuid.UUID, runs []uuid.UUID) error {
	return deleteOfRuns(ctx, tx, account, runs)
}

// LastOfRunTx returns the last event of a run that has a number; nil if there is none. An event of the run that has no number yet does not get one before
// the transaction ends.
func LastOfRunTx(ctx context.Context, tx postgres.Tx, account, run uuid.UUID) (*Event, error) {
	return selectLastOfRun(ctx, tx, account, run)
}

// together is the largest number of events that get their numbers in one transaction.
const together = 500

// Number gives numbers to events that have none, in a transaction in which also is called with them. more reports whether some are left. It
// does nothing while another process does it.
func Number(ctx context.Context, db *postgres.DB, also func(tx postgres.Tx, events []Event) error) (more bool, err error) {
	err = db.InTx(ctx, func(tx postgres.Tx) error {
		more = false

		head, free, err := lockHead(ctx, tx)
		if err != nil || !free {
			return err
		}

		events, err := number(ctx, tx, head, together)
		if err != nil || len(events) == 0 {
			return err
		}

		more = len(events) == together

		if err := setHead(ctx, tx, events[len(events)-1].Seq); err != nil {
			return err
		}

		return also(tx, events)
	})

	return more, err
}

// Head returns the highest number, and whether there are events without one.
func Head(ctx context.Context, q postgres.Querier) (seq int64, waiting bool, err error) {
	return selectHead(ctx, q)
}

// Range is a part of some logs: the events after one number, up to another.
type Range struct {
	Logs         []uuid.UUID
	After, Until int64
}

// List returns the first events of a range, in the order of their numbers.
func List(ctx context.Context, q postgres.Querier, r Range, limit int) ([]Event, error) {
	return selectEvents(ctx, q, r, limit)
}

// Get returns an event; nil if it does not exist or is no longer kept.
func Get(ctx context.Context, q postgres.Querier, log uuid.UUID, seq int64) (*Event, error) {
	found, err := selectEvents(ctx, q, Range{Logs: []uuid.UUID{log}, After: seq - 1, Until: seq}, 1)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	return &found[0], nil
}

const (
	// Kept is how long events are kept at least. They are dropped by whole weeks.
	Kept       = 7 * 24 * time.Hour
	weeksAhead = 2
)

// Oldest returns the number below which events may have been dropped.
func Oldest(now time.Time) int64 { return now.Add(-Kept).UnixMicro() }

// Prepare creates the partitions of this week and the next ones. Any replica may call it at any time.
func Prepare(ctx context.Context, db *postgres.DB, now time.Time) error {
	var problems []error

	for i := range weeksAhead + 1 {
		problems = append(problems, db.InTx(ctx, func(tx postgres.Tx) error {
			return makePartition(ctx, tx, now.UTC().AddDate(0, 0, 7*i))
		}))
	}

	return errors.Join(problems...)
}

// Drop drops the events that are no longer kept.
func Drop(ctx context.Context, db *postgres.DB, now time.Time) error {
	return db.InTx(ctx, func(tx postgres.Tx) error { return dropPartitions(ctx, tx, now.Add(-Kept)) })
}
