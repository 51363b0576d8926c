// Package meaning describes what the columns and rows of a dataset mean: which figures add up, which numbers are names,
// how datasets belong together. The rules, models and people that write questions as forms use it.
package meaning

// Meaning is what a dataset means. A draft comes from the profile; a person confirms or corrects it.
type Meaning struct {
	Row      string            `json:"row,omitempty"`      // what one row is: "order line"
	Columns  map[string]Column `json:"columns,omitempty"`  // by name
	Joins    []Join            `json:"joins,omitempty"`    // to datasets of which a row here has at most one
	Measures []Measure         `json:"measures,omitempty"` // figures with a name
}

// Column is the meaning of a column.
type Column struct {
	Role          Role     `json:"role"`
	Unit          string   `json:"unit,omitempty"`
	Synonyms      []string `json:"synonyms,omitempty"`
	NotForFigures bool     `json:"notForFigures,omitempty"` // it is never aggregated
	Confirmed     bool     `json:"confirmed,omitempty"`     // a person said so
}

// Role is what the values of a column are.
type Role string

// The roles.
const (
	Identifier Role = "identifier" // identifies a row here or in another dataset
	Code       Role = "code"       // number or text that stands for something: a postcode, a rank
	Year       Role = "year"
	Category   Role = "category" // one of a few values
	Name       Role = "name"     // names a thing or a person
	Date       Role = "date"     // day or moment
	Amount     Role = "amount"   // adds up
	Balance    Role = "balance"  // adds up over things, not over time: stock, headcount
	Price      Role = "price"    // of one unit, or a rate: averaged, never added up
	Count      Role = "count"    // number of things; adds up
	Duration   Role = "duration" // adds up
	Share      Role = "share"    // percentage or fraction: averaged, never added up
	Flag       Role = "flag"     // yes or no
	Text       Role = "text"     // anything else that is written
	Unknown    Role = "unknown"  // number of which the function must be said
)

// Adds reports whether the values may be added up, at least over things.
func (r Role) Adds() bool { return r == Amount || r == Balance || r == Count || r == Duration }

// IsFigure reports whether the values may be aggregated at all.
func (r Role) IsFigure() bool { return r.Adds() || r == Price || r == Share || r == Unknown }

// Join says that the columns of a row here name at most one row of another dataset.
type Join struct {
	Columns   []string `json:"columns"`
	To        string   `json:"to"`   // dataset, as a path within the namespace or owner/namespace/dataset
	Keys      []string `json:"keys"` // its columns, in the same order
	Confirmed bool     `json:"confirmed,omitempty"`
}

// Measure is a figure with a name.
type Measure struct {
	Name       string   `json:"name"`
	Synonyms   []string `json:"synonyms,omitempty"`
	Function   string   `json:"function"`   // sum, average, median, min, max, count, countDistinct
	Expression string   `json:"expression"` // of columns, numbers and + - * /: "quantity * price"; "products.price" is a column of a joined dataset
	Unit       string   `json:"unit,omitempty"`
	Confirmed  bool     `json:"confirmed,omitempty"`
}
