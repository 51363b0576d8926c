package lake

import (
	"strconv"
	"testing"

	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
)

func TestPinned(t *testing.T) {
	t.Parallel()

	p, at := newPlace(t), newTable()
	columns := []Column{{Name: "a", Type: Bigint}, {Name: "Notes", Type: JSON}}
	snapshots := []Snapshot{
		p.add(at, Append, 0, 3, columns...),
		p.add(at, Append, 3, 2, append(columns, Column{Name: "more", Type: Decimal(9, 2)})...),
		p.add(at, Replace, 9, 1, columns...),
	}

	for i, snapshot := range snapshots {
		content, err := p.Pinned(t.Context(), at, snapshot.ID)
		require.NoError(t, err)

		// iceberg-go and our own reader both accept it.
		_, err = parseMetadata(content)
		require.NoError(t, err)

		metadata, err := table.ParseMetadataBytes(content)
		require.NoError(t, err)
		require.Len(t, metadata.Snapshots(), 1)
		require.Len(t, metadata.Schemas(), 1)
		require.Equal(t, snapshot.Number, metadata.CurrentSnapshot().SnapshotID)
		require.Equal(t, int64(i+1), metadata.CurrentSnapshot().SequenceNumber)
		require.Equal(t, snapshot.CommittedAt.UnixMilli(), metadata.CurrentSnapshot().TimestampMs)
		require.Len(t, metadata.CurrentSchema().Fields(), len(snapshot.Columns))

		for j, field := range metadata.CurrentSchema().Fields() {
			require.Equal(t, snapshot.Columns[j].ID, field.ID)
			require.Equal(t, snapshot.Columns[j].Name, field.Name)
		}

		list, err := p.keyOf(metadata.CurrentSnapshot().ManifestList)
		require.NoError(t, err)
		manifests, err := p.recallList(t.Context(), list)
		require.NoError(t, err)
		keys, err := p.keysOf(t.Context(), manifests)
		require.NoError(t, err)
		require.Len(t, keys, snapshot.Files)

		for _, other := range snapshots {
			if other.ID != snapshot.ID {
				require.NotContains(t, string(content), strconv.FormatInt(other.Number, 10))
			}
		}
	}

	_, err := p.Pinned(t.Context(), at, uuid.New())
	require.True(t, fault.Is(err, fault.NotFound), err)
	_, err = p.Pinned(t.Context(), newTable(), snapshots[0].ID)
	require.True(t, fault.Is(err, fault.NotFound), err)
}
