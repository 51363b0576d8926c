package lake

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/google/uuid"
)

// Pinned returns Iceberg's metadata of a table as if the table had only one snapshot, as JSON. It is made from rows of
// the database alone, so it shows nothing of other snapshots, and it also exists for a snapshot that the table's own
// metadata no longer lists. NotFound if the snapshot does not exist.
func (l *Lake) Pinned(ctx context.Context, t Table, snapshot uuid.UUID) (json.RawMessage, error) {
	e, err := l.find(ctx, t, snapshot)
	if err != nil {
		return nil, err
	}

	m := newMetadata(t, l.base+tableKey(t))
	schema := m.adopt(schemaOf(e.Columns))

	m.LastSequence = e.Sequence - 1
	if err := m.add(tableSnapshot{
		ID: e.Number, Sequence: e.Sequence, Timestamp: e.CommittedAt.UnixMilli(), List: l.base + e.list, Schema: &schema.ID,
		Summary: map[string]string{
			"operation": e.Operation.iceberg(), "total-data-files": strconv.Itoa(e.Files), "total-records": strconv.FormatInt(e.Rows, 10),
			"total-files-size": strconv.FormatInt(e.Bytes, 10), "total-delete-files": "0", "total-position-deletes": "0", "total-equality-deletes": "0",
		},
	}); err != nil {
		return nil, err
	}

	return json.Marshal(m)
}
