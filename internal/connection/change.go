package connection

import (
	"encoding/json"

	"quern.dev/quern/internal/fault"
)

// Change is a change of a connection. Nil means that something stays. Where a connection leads cannot be changed, so that a secret never goes to another host.
type Change struct {
	Name     *string
	Keys     *AccessKey
	Password *string
	Token    *string
}

// AccessKey is a pair of credentials of an S3 store.
type AccessKey struct{ ID, Secret string }

// secret returns the new secret for a connection, and nil if it stays.
func (change Change) secret(of *Connection) (*string, error) {
	switch {
	case change.Keys == nil && change.Password == nil && change.Token == nil:
		return nil, nil //nolint:nilnil // nothing changes
	case (of.Kind == KindPostgres || of.Kind == KindHTTPS && of.HTTPS.Auth == Basic) && change.Password != nil && change.Keys == nil && change.Token == nil:
		return change.Password, nil
	case of.Kind == KindHTTPS && of.HTTPS.Auth == Bearer && change.Token != nil && change.Keys == nil && change.Password == nil:
		return change.Token, checkToken(of.HTTPS, *change.Token)
	case of.Kind == KindS3 && change.Keys != nil && change.Password == nil && change.Token == nil:
		of.S3.AccessKeyID = change.Keys.ID

		return &change.Keys.Secret, nil
	default:
		return nil, fault.New(fault.ValidationFailed,
			"A connection of the kind s3 has accessKeyId and secretAccessKey, one of the kind postgresql has password, one of the kind https has what it was made with: token or password, and one of the kind iceberg has "+
				"accessKeyId and secretAccessKey of the store, and token or the clientSecret as password.")
	}
}

// field is the field with the new secret.
func (change Change) field() string {
	switch {
	case change.Password != nil:
		return "password"
	case change.Token != nil:
		return "token"
	default:
		return "secretAccessKey"
	}
}

// changed is Change.secret for a connection of any kind. A catalog has two secrets; one that is not given stays.
func (c *Connections) changed(of *Connection, change Change) (*string, error) {
	if of.Kind != KindIceberg || change.Keys == nil && change.Password == nil && change.Token == nil {
		return change.secret(of)
	}

	if change.Token != nil && of.Iceberg.Auth != Bearer || change.Password != nil && of.Iceberg.Auth != Client {
		return nil, fault.New(fault.ValidationFailed, "The catalog of the connection has another kind of credentials: token is for one with a token, and password for the secret of a client.")
	}

	was, err := c.Keys.open(of.secret, of.Account, of.ID)
	if err != nil {
		return nil, fault.New(fault.ValidationFailed, toldIceberg(ProblemKey)+" Make another connection.")
	}

	var secret icebergSecret
	if err := json.Unmarshal(was, &secret); err != nil {
		return nil, err
	}

	for _, given := range []*string{change.Token, change.Password} {
		if given != nil {
			secret.Catalog = *given
		}
	}

	if change.Keys != nil {
		of.Iceberg.Store.AccessKeyID, secret.Store = change.Keys.ID, change.Keys.Secret
	}

	text, err := secret.text()
	if err == nil {
		err = checkCatalogSecret(of.Iceberg, text)
	}

	return &text, err
}
