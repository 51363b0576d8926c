package lake

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/google/uuid"
)

// Pinned returns Iceberg's metadata of a table as JSON, as if the table had only one snapshot. Pinned reads the database and not the stored
// metadata, so the result contains nothing of other snapshots, and snapshots that the stored metadata no longer lists work, too. The
// fault is NotFound if the snapshot does not exist.
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
