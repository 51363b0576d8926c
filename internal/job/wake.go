package job

import (
	"context"
	"fmt"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// Wake lets the workers of this process look for jobs of a queue now. It is a hint for after the transaction that made
// one: those of other processes poll, and so do these.
func (c *Client) Wake(queue string) {
	select {
	case c.wakes <- queue:
	default: // they are awake
	}
}

const wakesWaiting = 16

// quiet is River's driver without NOTIFY. Its listener hears this process alone.
type quiet struct {
	*riverpgxv5.Driver

	wakes wakes
}

func (quiet) SupportsListener() bool     { return true }
func (quiet) SupportsListenNotify() bool { return false }

func (q quiet) GetListener(*riverdriver.GetListenenerParams) riverdriver.Listener { return q.wakes }

// wakes are the queues that have something new.
type wakes chan string

const insertTopic = "river_insert"

func (w wakes) WaitForNotification(ctx context.Context) (*riverdriver.Notification, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case queue := <-w:
		return &riverdriver.Notification{Topic: insertTopic, Payload: fmt.Sprintf(`{"queue": %q}`, queue)}, nil
	}
}

func (wakes) Close(context.Context) error            { return nil }
func (wakes) Connect(context.Context) error          { return nil }
func (wakes) Listen(context.Context, string) error   { return nil }
func (wakes) Ping(context.Context) error             { return nil }
func (wakes) Schema() string                         { return "" }
func (wakes) SetAfterConnectExec(string)             {}
func (wakes) Unlisten(context.Context, string) error { return nil }
