package icebergrest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// Schemas opens and finds schemas.
type Schemas struct {
	DB  *postgres.DB
	Now func() time.Time
}

// Schema is what one statement can see.
type Schema struct {
	Name  string // Trino's schema names begin with it; random
	Token string // secret of the statement
}

// Table is a table of a schema.
type Table struct {
	Schema   string    `json:"schema"` // a name that begins with Schema.Name
	Name     string    `json:"name"`
	Account  uuid.UUID `json:"account"`
	Dataset  uuid.UUID `json:"dataset"`
	Snapshot uuid.UUID `json:"snapshot"`
}

func (t Table) lake() lake.Table { return lake.Table{Account: t.Account, Dataset: t.Dataset} }

const (
	nameBytes  = 16
	tokenBytes = 32

	// schemaPrefix tells the rules of Trino's access control which schemas are ours.
	schemaPrefix = "q_"
)

// New returns a schema that does not exist yet. The account is that of the caller of the statement.
func New(account uuid.UUID) Schema {
	name, secret := make([]byte, nameBytes), make([]byte, tokenBytes)
	_, _ = rand.Read(name) // never fails
	_, _ = rand.Read(secret)

	return Schema{Name: schemaPrefix + hex.EncodeToString(name), Token: base64.RawURLEncoding.EncodeToString(append(account[:], secret...))}
}

// Open makes the tables visible under the token of the schema until the deadline.
func (s Schemas) Open(ctx context.Context, schema Schema, tables []Table, deadline time.Time) error {
	account, hash, _ := hashed(schema.Token)

	return s.DB.Do(ctx, func(q postgres.Querier) error { return insertSchema(ctx, q, account, hash, tables, deadline) })
}

const closeTime = 5 * time.Second

// Close ends the schema. It works after ctx has ended too. A schema that could not be closed ends at its deadline.
func (s Schemas) Close(ctx context.Context, schema Schema) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()

	account, hash, _ := hashed(schema.Token)

	return s.DB.Do(ctx, func(q postgres.Querier) error { return deleteSchema(ctx, q, account, hash) })
}

const cleanBatch = 1000

// Clean removes the rows of schemas whose process ended without closing them.
func (s Schemas) Clean(ctx context.Context) error {
	return s.DB.Do(ctx, func(q postgres.Querier) error { return dropStale(ctx, q, s.Now(), cleanBatch) })
}

// tables returns the tables that a token shows. It returns nil if there is no such token or its deadline has passed.
func (s Schemas) tables(ctx context.Context, token string) (tables []Table, err error) {
	account, hash, ok := hashed(token)
	if !ok {
		return nil, nil
	}

	err = s.DB.Do(ctx, func(q postgres.Querier) error {
		tables, err = selectTables(ctx, q, account, hash, s.Now())

		return err
	})

	return tables, err
}

// hashed returns the account that a token contains, and the hash under which it is stored.
func hashed(token string) (account uuid.UUID, hash []byte, ok bool) {
	content, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(content) != len(account)+tokenBytes {
		return account, nil, false
	}

	sum := sha256.Sum256(content)

	return uuid.UUID(content[:len(account)]), sum[:], true
}

// find returns the table with a name. Trino sends all names in lower case.
func find(tables []Table, schema, name string) (Table, bool) {
	for _, t := range tables {
		if t.Schema == schema && strings.EqualFold(t.Name, name) {
			return t, true
		}
	}

	return Table{}, false
}
