package duckdb

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// kind is the type of a column of a result: its name, and SQL that converts its values to JSON and to the types that
// files can contain. A nil function means that DuckDB's default conversion is correct. JSON is never converted to JSON
// again, because DuckDB would parse and write it once more.
type kind struct {
	name string
	json func(value string) string
	file func(value string) string // for Parquet
	line func(value string) string // for delimited text
	// arrow is the type of the values for files in Arrow, if DuckDB's memory has them in that way. It is nil for others.
	arrow arrow.DataType
}

const safeInteger = 9007199254740991 // JSON readers lose digits of larger integers

func asText(value string) string { return `CAST(` + value + ` AS VARCHAR)` }

func quoted(value string) string { return `to_json(` + asText(value) + `)` }

// integer returns SQL for an integer as a JSON number, or as a JSON text if JSON readers would lose digits.
func integer(value string) string {
	return fmt.Sprintf(`CASE WHEN %[1]s BETWEEN -%[2]d AND %[2]d THEN to_json(CAST(%[1]s AS BIGINT)) ELSE to_json(CAST(%[1]s AS VARCHAR)) END`, value, safeInteger)
}

// unsigned does the same as integer for unsigned values that cannot be compared with negative numbers.
func unsigned(value string) string {
	return fmt.Sprintf(`CASE WHEN %[1]s <= CAST(%[2]d AS UHUGEINT) THEN to_json(CAST(%[1]s AS BIGINT)) ELSE to_json(CAST(%[1]s AS VARCHAR)) END`, value, safeInteger)
}

// double returns SQL for a double as a JSON number. NaN and infinity become texts, because JSON has no such numbers.
func double(value string) string { return numberOrName(value, `to_json(`+value+`)`) }

// float does the same as double for a float. It writes the digits of the float itself, not those of the converted
// double.
func float(value string) string { return numberOrName(value, `CAST(`+asText(value)+` AS JSON)`) }

func numberOrName(value, number string) string {
	return fmt.Sprintf(`CASE WHEN isfinite(%[1]s) THEN %[2]s WHEN isnan(%[1]s) THEN to_json('NaN') `+
		`WHEN %[1]s > 0 THEN to_json('Infinity') WHEN %[1]s < 0 THEN to_json('-Infinity') END`, value, number)
}

// floatLine returns SQL for a double or float as text, with the words that the parser of doubles accepts.
func floatLine(value string) string {
	return fmt.Sprintf(`CASE WHEN isfinite(%[1]s) THEN CAST(%[1]s AS VARCHAR) WHEN isnan(%[1]s) THEN 'NaN' WHEN %[1]s > 0 THEN 'Infinity' WHEN %[1]s < 0 THEN '-Infinity' END`, value)
}

// moment returns SQL for a timestamp as JSON text in ISO 8601.
func moment(value string) string { return `to_json(` + isoText(value) + `)` }

func zonedMoment(value string) string {
	return `to_json(regexp_replace(` + isoText(value) + `, '\+00$', 'Z'))`
}

func isoText(value string) string {
	return `replace(replace(` + asText(value) + `, ' ', 'T'), 'T(BC)', ' (BC)')`
}

// exactDigits is the number of decimal digits that a double always represents exactly.
const exactDigits = 15

// kindOf returns the kind for a DuckDB type.
func kindOf(logical duckdb.LogicalType) kind {
	k := sqlKind(logical)
	k.arrow = arrowType(logical, k)

	return k
}

// arrowType returns the Arrow type of a value that DuckDB's memory has as Arrow needs it, after its conversion for files.
// It returns nil for all others.
func arrowType(logical duckdb.LogicalType, k kind) arrow.DataType {
	types := map[duckdb.Type]arrow.DataType{
		duckdb.TypeBoolean: arrow.FixedWidthTypes.Boolean,
		duckdb.TypeTinyInt: arrow.PrimitiveTypes.Int8, duckdb.TypeSmallInt: arrow.PrimitiveTypes.Int16,
		duckdb.TypeInteger: arrow.PrimitiveTypes.Int32, duckdb.TypeBigInt: arrow.PrimitiveTypes.Int64,
		duckdb.TypeUTinyInt: arrow.PrimitiveTypes.Uint8, duckdb.TypeUSmallInt: arrow.PrimitiveTypes.Uint16,
		duckdb.TypeUInteger: arrow.PrimitiveTypes.Uint32, duckdb.TypeUBigInt: arrow.PrimitiveTypes.Uint64,
		duckdb.TypeFloat: arrow.PrimitiveTypes.Float32, duckdb.TypeDouble: arrow.PrimitiveTypes.Float64,
		duckdb.TypeVarchar: arrow.BinaryTypes.String, duckdb.TypeStringLiteral: arrow.BinaryTypes.String, duckdb.TypeBlob: arrow.BinaryTypes.Binary,
		duckdb.TypeDate: arrow.FixedWidthTypes.Date32, duckdb.TypeTime: arrow.FixedWidthTypes.Time64us,
		duckdb.TypeTimestamp: &arrow.TimestampType{Unit: arrow.Microsecond}, duckdb.TypeTimestampTZ: arrow.FixedWidthTypes.Timestamp_us,
		duckdb.TypeHugeInt: &arrow.Decimal128Type{Precision: hugeDigits}, // is cast
	}

	switch id := duckdb.GetTypeId(logical); {
	case id == duckdb.TypeDecimal:
		return &arrow.Decimal128Type{Precision: int32(duckdb.DecimalWidth(logical)), Scale: int32(duckdb.DecimalScale(logical))}
	case types[id] != nil:
		return types[id]
	case k.file != nil: // all other conversions for files return texts
		return arrow.BinaryTypes.String
	default:
		return nil
	}
}

// hugeDigits is the number of decimal digits that fit into a HUGEINT.
const hugeDigits = 38

func sqlKind(logical duckdb.LogicalType) kind {
	if duckdb.LogicalTypeGetAlias(logical) == "JSON" {
		return kind{name: "json"}
	}

	switch duckdb.GetTypeId(logical) {
	case duckdb.TypeBoolean:
		return kind{name: "boolean"}
	case duckdb.TypeTinyInt:
		return kind{name: "tinyint"}
	case duckdb.TypeSmallInt:
		return kind{name: "smallint"}
	case duckdb.TypeInteger:
		return kind{name: "integer"}
	case duckdb.TypeUTinyInt:
		return kind{name: "utinyint"}
	case duckdb.TypeUSmallInt:
		return kind{name: "usmallint"}
	case duckdb.TypeUInteger:
		return kind{name: "uinteger"}
	case duckdb.TypeBigInt:
		return kind{name: "bigint", json: integer}
	case duckdb.TypeUBigInt:
		return kind{name: "ubigint", json: integer}
	case duckdb.TypeHugeInt:
		return kind{name: "hugeint", json: integer, file: func(value string) string { return `CAST(` + value + ` AS DECIMAL(38, 0))` }}
	case duckdb.TypeUHugeInt:
		return kind{name: "uhugeint", json: unsigned, file: asText}
	case duckdb.TypeFloat:
		return kind{name: "float", json: float, line: floatLine}
	case duckdb.TypeDouble:
		return kind{name: "double", json: double, line: floatLine}
	case duckdb.TypeDecimal:
		return decimalKind(int(duckdb.DecimalWidth(logical)), int(duckdb.DecimalScale(logical)))
	case duckdb.TypeVarchar, duckdb.TypeStringLiteral:
		return kind{name: "varchar"}
	case duckdb.TypeDate:
		return kind{name: "date", json: quoted}
	case duckdb.TypeTimestamp, duckdb.TypeTimestampS, duckdb.TypeTimestampMS, duckdb.TypeTimestampNS:
		return kind{name: "timestamp", json: moment}
	case duckdb.TypeTimestampTZ:
		return kind{name: "timestamp with time zone", json: zonedMoment}
	case duckdb.TypeTime, duckdb.TypeTimeNS:
		return kind{name: "time", json: quoted}
	case duckdb.TypeUUID:
		return kind{name: "uuid", json: quoted}
	case duckdb.TypeEnum:
		return kind{name: "varchar", json: quoted, file: asText}
	case duckdb.TypeBlob:
		base64 := func(value string) string { return `to_base64(` + value + `)` }

		return kind{name: "blob", json: func(value string) string { return `to_json(` + base64(value) + `)` }, line: base64}
	case duckdb.TypeSQLNull:
		return kind{name: "null", file: asText}
	default:
		return nestedKind(logical)
	}
}

// decimalKind returns the kind for a decimal type. A decimal becomes a JSON number if a double can represent all its
// digits, and a JSON text otherwise.
func decimalKind(width, scale int) kind {
	digits := asText
	number := func(value string) string { return `to_json(` + value + `)` }

	switch scale {
	case width: // DuckDB writes .5, which is not valid JSON, even in its own JSON output
		digits = func(value string) string { return `regexp_replace(` + asText(value) + `, '^(-?)\.', '\10.')` }
		number = func(value string) string { return `CAST(` + digits(value) + ` AS JSON)` }
	case 0:
		number = func(value string) string { return `to_json(CAST(` + value + ` AS BIGINT))` } // otherwise DuckDB writes 7.0
	}

	k := kind{name: fmt.Sprintf("decimal(%d,%d)", width, scale), json: number}
	if width > exactDigits {
		k.json = func(value string) string {
			return fmt.Sprintf(`CASE WHEN abs(%s) < CAST('1e%d' AS DOUBLE) THEN %s ELSE to_json(%s) END`, value, exactDigits-scale, number(value), digits(value))
		}
	}

	return k
}

func nestedKind(logical duckdb.LogicalType) kind {
	switch duckdb.GetTypeId(logical) {
	case duckdb.TypeList:
		inner := duckdb.ListTypeChildType(logical)
		defer duckdb.DestroyLogicalType(&inner)

		return listKind(kindOf(inner), "[]")
	case duckdb.TypeArray:
		inner := duckdb.ArrayTypeChildType(logical)
		defer duckdb.DestroyLogicalType(&inner)

		return listKind(kindOf(inner), fmt.Sprintf("[%d]", duckdb.ArrayTypeArraySize(logical)))
	case duckdb.TypeStruct:
		return structKind(logical)
	case duckdb.TypeMap:
		return mapKind(logical)
	default: // INTERVAL, TIMETZ, BIT, BIGNUM, UNION and future types
		names := map[duckdb.Type]string{
			duckdb.TypeInterval: "interval", duckdb.TypeTimeTZ: "time with time zone", duckdb.TypeBit: "bit", duckdb.TypeBigNum: "bignum",
			duckdb.TypeUnion: "union", duckdb.TypeVariant: "variant", duckdb.TypeGeometry: "geometry",
		}

		kindName, known := names[duckdb.GetTypeId(logical)]
		if !known {
			kindName = "other"
		}

		return kind{name: kindName, json: quoted, file: asText}
	}
}

// asJSON returns SQL that converts a value to JSON.
func (k kind) asJSON(value string) string {
	if k.json == nil {
		return `to_json(` + value + `)`
	}

	return k.json(value)
}

// asLine returns SQL that converts a value for delimited text. Nested values become JSON.
func (k kind) asLine(value string) string {
	if k.line != nil {
		return k.line(value)
	}

	return value
}

// formulaStarts are the first characters that make a spreadsheet interpret a text as a formula, or that it ignores
// before a formula.
const formulaStarts = "=+-@\t\r\n"

// escaped returns SQL for delimited text that no spreadsheet evaluates: an apostrophe is put before texts that look
// like formulas. Numbers, dates and times are not escaped, because they cannot be formulas.
func (k kind) escaped(line string) string {
	base, _, _ := strings.Cut(k.name, "(")

	switch base {
	case "boolean", "tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint", "uinteger", "ubigint", "uhugeint",
		"float", "double", "decimal", "date", "timestamp", "timestamp with time zone", "time", "time with time zone", "uuid":
		return line
	}

	return fmt.Sprintf(`CASE WHEN %[2]s <> '' AND contains(%[1]s, left(%[2]s, 1)) THEN concat(chr(39), %[2]s) ELSE %[2]s END`, text(formulaStarts), asText(line))
}

// escape does the same as escaped for the name of a column.
func escape(name string) string {
	if strings.ContainsAny(name[:min(len(name), 1)], formulaStarts) {
		return "'" + name
	}

	return name
}

func (k kind) asFile(value string) string {
	if k.file != nil {
		return k.file(value)
	}

	return value
}

// nested returns a kind that contains other kinds. If plain is false, files cannot contain one of them, so the value
// becomes JSON text in files.
func nested(kindName string, plain bool, json func(string) string) kind {
	k := kind{name: kindName, json: json, line: func(value string) string { return `CAST(` + json(value) + ` AS VARCHAR)` }}
	if !plain {
		k.file = k.line
	}

	return k
}

func listKind(inner kind, suffix string) kind {
	return nested(inner.name+suffix, inner.file == nil, func(value string) string {
		return `to_json(list_transform(` + value + `, lambda e: ` + inner.asJSON("e") + `))`
	})
}

func structKind(logical duckdb.LogicalType) kind {
	var (
		names, shown []string
		fields       []kind
		plain        = true
	)

	for i := range duckdb.StructTypeChildCount(logical) {
		inner := duckdb.StructTypeChildType(logical, i)
		field := kindOf(inner)
		duckdb.DestroyLogicalType(&inner)

		names, fields = append(names, duckdb.StructTypeChildName(logical, i)), append(fields, field)
		shown = append(shown, strings.TrimSpace(names[i]+" "+field.name))
		plain = plain && field.file == nil && names[i] != ""
	}

	return nested("struct("+strings.Join(shown, ", ")+")", plain, func(value string) string {
		members := make([]string, len(fields))

		for i, field := range fields {
			if names[i] == "" { // a struct without names becomes an array
				members[i] = field.asJSON(fmt.Sprintf(`struct_extract(%s, %d)`, value, i+1))
			} else {
				members[i] = text(names[i]) + `, ` + field.asJSON(`struct_extract(`+value+`, `+text(names[i])+`)`)
			}
		}

		build := "json_object"
		if len(names) > 0 && names[0] == "" {
			build = "json_array"
		}

		return `CASE WHEN ` + value + ` IS NOT NULL THEN ` + build + `(` + strings.Join(members, ", ") + `) END`
	})
}

// mapKind uses struct_extract and not e.key, because a result can have a column with the name e.
func mapKind(logical duckdb.LogicalType) kind {
	key, value := duckdb.MapTypeKeyType(logical), duckdb.MapTypeValueType(logical)
	defer duckdb.DestroyLogicalType(&key)
	defer duckdb.DestroyLogicalType(&value)

	keys, values := kindOf(key), kindOf(value)

	return nested("map("+keys.name+", "+values.name+")", keys.file == nil && values.file == nil, func(of string) string {
		return `to_json(map_from_entries(list_transform(map_entries(` + of + `), lambda e: {k: CAST(struct_extract(e, 'key') AS VARCHAR), v: ` + values.asJSON(`struct_extract(e, 'value')`) + `})))`
	})
}
