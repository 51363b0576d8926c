package ingest

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/record"
)

func (g *Ingest) definitionOf(ctx context.Context, q postgres.Querier, dataset catalog.Dataset) (catalog.Definition, error) {
	found, err := g.Catalog.Definitions(ctx, q, dataset.Account, []uuid.UUID{dataset.ID})

	return found[dataset.ID], err
}

// fieldsOf returns the fields of the definition with what is known of their types, and how the documents write numbers and dates.
func (i Ingestion) fieldsOf(dataset catalog.Dataset, definition catalog.Definition) (fields []record.Field, style record.Style) {
	for name, description := range definition.SchemaDefinition {
		fields = append(fields, record.Field{
			Name: name, Description: description, Kind: kindOf(i.typeOf(dataset, name)), Unit: record.UnitOf(name, description),
			InKey: slices.ContainsFunc(dataset.Key.Columns, func(key string) bool { return strings.EqualFold(key, name) }),
		})
	}

	slices.SortFunc(fields, func(a, b record.Field) int { return cmp.Compare(a.Name, b.Name) })

	if i.Options.Decimal == "," || i.Options.Decimal == "." {
		style.Decimal = rune(i.Options.Decimal[0])
	}

	switch format := strings.ToLower(i.Options.DateFormat); {
	case strings.HasPrefix(format, "d"):
		style.Days = record.DayFirst
	case strings.HasPrefix(format, "m"):
		style.Days = record.MonthFirst
	}

	return fields, style
}

// asked returns the fields as a model is asked for them. The types of columns that earlier loads have made are left out, so that a load of
// the same documents asks the same.
func (i Ingestion) asked(fields []record.Field) []record.Field {
	list := slices.Clone(fields)
	for n := range list {
		list[n].Kind = kindOf(i.typeOf(catalog.Dataset{}, list[n].Name))
	}

	return list
}

// typeOf returns the type that the options or the dataset have for a column, "" if none.
func (i Ingestion) typeOf(dataset catalog.Dataset, name string) string {
	for column, kind := range i.Options.Types {
		if strings.EqualFold(column, name) {
			return kind
		}
	}

	for _, column := range dataset.Columns {
		if strings.EqualFold(column.Name, name) {
			return column.Type
		}
	}

	return ""
}

func kindOf(name string) record.Kind {
	switch {
	case name == "":
		return record.Open
	case name == engine.Bigint:
		return record.Whole
	case name == engine.Double, strings.HasPrefix(name, engine.Decimal):
		return record.Number
	case name == engine.Date:
		return record.Date
	case strings.HasPrefix(name, engine.Timestamp):
		return record.Timestamp
	case name == engine.Time:
		return record.Time
	case name == engine.Boolean:
		return record.Truth
	default:
		return record.Text
	}
}
