package job

import (
	"context"
	"fmt"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// Wake makes the workers of this process check a queue for jobs now. Call it after the transaction that inserted a
// job. It is only a hint and does not reach other processes: all workers also poll.
func (c *Client) Wake(queue string) {
	select {
	case c.wakes <- queue:
	default: // wake-ups are already waiting
	}
}

const wakesWaiting = 16

// quiet is River's driver without NOTIFY. Its listener receives only the wake-ups of this process.
type quiet struct {
	*riverpgxv5.Driver

	wakes wakes
}

func (quiet) SupportsListener() bool     { return true }
func (quiet) SupportsListenNotify() bool { return false }

func (q quiet) GetListener(*riverdriver.GetListenenerParams) riverdriver.Listener { return q.wakes }

// wakes contains the queues that have new jobs.
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
