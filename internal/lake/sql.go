package lake

import (
	"database/sql/driver"
	"encoding/json"
)

const (
	sqlSnapshotColumns = `
		s.id, s.sequence, s.number, s.operation, s.schema_id, c.columns, s.row_count, s.byte_count, s.file_count, s.manifest_list, s.committed_at, s.generation`
	sqlFromTable = `
		FROM lake_tables t
		LEFT JOIN iceberg_tables i ON i.catalog_name = 'quern' AND i.table_namespace = t.account_id::text AND i.table_name = t.dataset_id::text
		LEFT JOIN lake_snapshots s ON s.account_id = t.account_id AND s.dataset_id = t.dataset_id AND s.id = t.snapshot_id
		LEFT JOIN lake_schemas c ON c.account_id = s.account_id AND c.dataset_id = s.dataset_id AND c.id = s.schema_id`
	sqlWhereTable = ` WHERE t.account_id = $1 AND t.dataset_id = $2`
)

// document is sent as JSON text, even if the driver does not know the type of the column.
type document struct{ content any }

// Value implements driver.Valuer.
func (d document) Value() (driver.Value, error) {
	content, err := json.Marshal(d.content)

	return string(content), err
}
