package connection

import "quern.dev/quern/internal/fault"

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
			"A connection of the kind s3 has accessKeyId and secretAccessKey, one of the kind postgresql has password, and one of the kind https has what it was made with: token or password.")
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
