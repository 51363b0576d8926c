package lake

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/apache/iceberg-go"
)

// mainBranch is the name of the reference to the current snapshot.
const mainBranch = "main"

// tableMetadata is Iceberg's metadata of a table, version 2, with all fields that it can have. It replaces the type
// of iceberg-go, whose package takes a tenth of a second to initialize in every sealed process. Metadata that was
// read must not be changed, because others may read it concurrently.
type tableMetadata struct {
	LastSequence        int64                `json:"last-sequence-number"`
	FormatVersion       int                  `json:"format-version"`
	UUID                string               `json:"table-uuid"`
	Location            string               `json:"location"`
	Updated             int64                `json:"last-updated-ms"`
	LastColumn          int                  `json:"last-column-id"`
	Schemas             []*iceberg.Schema    `json:"schemas"`
	CurrentSchema       int                  `json:"current-schema-id"`
	Specs               json.RawMessage      `json:"partition-specs"`
	DefaultSpec         int                  `json:"default-spec-id"`
	LastPartition       int                  `json:"last-partition-id"`
	Properties          map[string]string    `json:"properties,omitempty"`
	CurrentSnapshot     int64                `json:"current-snapshot-id"`
	SnapshotLog         []snapshotLogEntry   `json:"snapshot-log,omitempty"`
	MetadataLog         []metadataLogEntry   `json:"metadata-log,omitempty"`
	SortOrders          json.RawMessage      `json:"sort-orders"`
	DefaultSortOrder    int                  `json:"default-sort-order-id"`
	Refs                map[string]reference `json:"refs,omitempty"`
	Statistics          []json.RawMessage    `json:"statistics,omitempty"`
	PartitionStatistics []json.RawMessage    `json:"partition-statistics,omitempty"`
	Snapshots           []tableSnapshot      `json:"snapshots"`
}

type tableSnapshot struct {
	ID        int64             `json:"snapshot-id"`
	Parent    *int64            `json:"parent-snapshot-id,omitempty"`
	Sequence  int64             `json:"sequence-number"`
	Timestamp int64             `json:"timestamp-ms"`
	List      string            `json:"manifest-list,omitempty"`
	Summary   map[string]string `json:"summary,omitempty"`
	Schema    *int              `json:"schema-id,omitempty"`
}

type reference struct {
	Snapshot       int64  `json:"snapshot-id"`
	Type           string `json:"type"`
	MinSnapshots   *int   `json:"min-snapshots-to-keep,omitempty"`
	MaxSnapshotAge *int64 `json:"max-snapshot-age-ms,omitempty"`
	MaxAge         *int64 `json:"max-ref-age-ms,omitempty"`
}

type snapshotLogEntry struct {
	Snapshot  int64 `json:"snapshot-id"`
	Timestamp int64 `json:"timestamp-ms"`
}

type metadataLogEntry struct {
	File      string `json:"metadata-file"`
	Timestamp int64  `json:"timestamp-ms"`
}

// newMetadata returns the metadata of a table before its first snapshot, with the fields that never change.
func newMetadata(t Table, location string) *tableMetadata {
	return &tableMetadata{
		FormatVersion: formatVersion, UUID: t.Dataset.String(), Location: location,
		Specs: json.RawMessage(`[{"spec-id":0,"fields":[]}]`), LastPartition: iceberg.PartitionDataIDStart - 1,
		SortOrders: json.RawMessage(`[{"order-id":0,"fields":[]}]`),
		Properties: map[string]string{
			"write.metadata.previous-versions-max": "1",
			"gc.enabled":                           "false", // programs that expire snapshots must not delete files: this package keeps them
		},
	}
}

// parseMetadata decodes metadata written by Quern or another program. It fails if a field is missing that the next
// version must keep.
func parseMetadata(content []byte) (*tableMetadata, error) {
	m := &tableMetadata{
		LastSequence: -1, Updated: -1, LastColumn: -1, CurrentSchema: -1, DefaultSpec: -1, LastPartition: -1, CurrentSnapshot: -1, DefaultSortOrder: -1,
	}
	if err := json.Unmarshal(content, m); err != nil {
		return nil, err
	}

	main, isNamed := m.Refs[mainBranch]

	switch {
	case m.FormatVersion != formatVersion:
		return nil, fmt.Errorf("unsupported version %d of the metadata", m.FormatVersion)
	case min(m.LastSequence, m.Updated, m.CurrentSnapshot) < 0, min(m.LastColumn, m.LastPartition, m.DefaultSpec, m.DefaultSortOrder) < 0,
		m.UUID == "", m.Location == "", len(m.Specs) == 0, len(m.SortOrders) == 0:
		return nil, errors.New("the metadata is incomplete")
	case slices.Contains(m.Schemas, nil), !slices.ContainsFunc(m.Schemas, func(s *iceberg.Schema) bool { return s.ID == m.CurrentSchema }):
		return nil, errors.New("the metadata has no current schema")
	case isNamed && main.Snapshot != m.CurrentSnapshot, !slices.ContainsFunc(m.Snapshots, func(s tableSnapshot) bool { return s.ID == m.CurrentSnapshot }):
		return nil, errors.New("the metadata has no current snapshot")
	}

	return m, nil
}

// adopt makes the schema the current one. It reuses an equal schema of the table if there is one, else it assigns a
// new id.
func (m *tableMetadata) adopt(schema *iceberg.Schema) *iceberg.Schema {
	for _, known := range m.Schemas {
		if schema.Equals(known) {
			m.CurrentSchema = known.ID

			return known
		}

		schema.ID = max(schema.ID, known.ID+1)
	}

	m.Schemas = append(slices.Clip(m.Schemas), schema)
	m.CurrentSchema, m.LastColumn = schema.ID, max(m.LastColumn, schema.HighestFieldID())

	return schema
}

// add adds a snapshot and makes it the current one.
func (m *tableMetadata) add(s tableSnapshot) error {
	if s.Sequence <= m.LastSequence {
		return errChanged
	}

	refs := maps.Clone(m.Refs)
	if refs == nil {
		refs = map[string]reference{}
	}

	main := refs[mainBranch]
	main.Snapshot, main.Type = s.ID, "branch"
	refs[mainBranch] = main

	m.Snapshots = append(slices.Clip(m.Snapshots), s)
	m.SnapshotLog = append(slices.Clip(m.SnapshotLog), snapshotLogEntry{s.ID, s.Timestamp})
	m.CurrentSnapshot, m.LastSequence, m.Updated, m.Refs = s.ID, s.Sequence, max(m.Updated, s.Timestamp), refs

	return nil
}

// expire removes all snapshots but the last keep, and everything that refers only to removed snapshots.
func (m *tableMetadata) expire(keep int) error {
	m.Snapshots = slices.Clone(m.Snapshots[max(0, len(m.Snapshots)-keep):])

	var (
		kept = map[int64]bool{}
		used = map[int]bool{m.CurrentSchema: true}
	)

	for _, s := range m.Snapshots {
		kept[s.ID] = true

		if s.Schema != nil {
			used[*s.Schema] = true
		}
	}

	m.Schemas = slices.DeleteFunc(slices.Clone(m.Schemas), func(s *iceberg.Schema) bool { return !used[s.ID] })
	maps.DeleteFunc(m.Refs, func(_ string, r reference) bool { return !kept[r.Snapshot] })

	// The log must have no gaps.
	for i, e := range slices.Backward(m.SnapshotLog) {
		if !kept[e.Snapshot] {
			m.SnapshotLog = m.SnapshotLog[i+1:]

			break
		}
	}

	var err error
	if m.Statistics, err = about(m.Statistics, kept); err == nil {
		m.PartitionStatistics, err = about(m.PartitionStatistics, kept)
	}

	return err
}

// about returns the statistics of snapshots that are kept.
func about(statistics []json.RawMessage, kept map[int64]bool) (rest []json.RawMessage, err error) {
	for _, content := range statistics {
		var s reference
		if err := json.Unmarshal(content, &s); err != nil {
			return nil, err
		}

		if kept[s.Snapshot] {
			rest = append(rest, content)
		}
	}

	return rest, nil
}
