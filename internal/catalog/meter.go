package catalog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/postgres"
)

// Meter counts the time and the bytes of statements. It writes the sums once a second, so statements do not wait, and many small statements
// need one write. A process that is killed loses the counts of its last second. A nil Meter counts nothing.
type Meter struct {
	catalog Catalog
	log     *slog.Logger

	mu      sync.Mutex
	pending map[uuid.UUID]metered
}

// metered is what statements of an account have used.
type metered struct{ milliseconds, bytes int64 }

// NewMeter returns a Meter. Run must be running.
func NewMeter(c Catalog, log *slog.Logger) *Meter {
	return &Meter{catalog: c, log: log, pending: map[uuid.UUID]metered{}}
}

const (
	meterEvery = time.Second
	meterTime  = 5 * time.Second // for the last write of a process that ends
)

// Add counts a statement.
func (m *Meter) Add(account uuid.UUID, took time.Duration, bytes int64) {
	if m != nil {
		m.add(account, metered{took.Milliseconds(), bytes})
	}
}

func (m *Meter) add(account uuid.UUID, used metered) {
	m.mu.Lock()
	defer m.mu.Unlock()

	sum := m.pending[account]
	m.pending[account] = metered{sum.milliseconds + used.milliseconds, sum.bytes + used.bytes}
}

// Run writes the counts once a second until ctx ends. Then it writes the remaining counts and returns.
func (m *Meter) Run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(meterEvery):
			m.write(ctx)
		}
	}

	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), meterTime)
	defer cancel()

	m.write(last)
}

// write adds the counts to the usage of the accounts. If a write fails, the next call repeats it.
func (m *Meter) write(ctx context.Context) {
	m.mu.Lock()
	pending := m.pending
	m.pending = map[uuid.UUID]metered{}
	m.mu.Unlock()

	for account, used := range pending {
		err := m.catalog.DB.Do(ctx, func(q postgres.Querier) error {
			return addUsage(ctx, q, account, m.catalog.today(), []Kind{QuerySeconds, ScannedBytes}, []int64{used.milliseconds, used.bytes})
		})
		if err != nil {
			m.add(account, used)
			m.log.WarnContext(ctx, "the usage of statements could not be written yet", "account", account, "error", err)
		}
	}
}
