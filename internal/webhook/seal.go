package webhook

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
)

// sealed is the encrypted part of a push notification config.
type sealed struct {
	Token       string `json:"token"`
	Scheme      string `json:"scheme"`
	Credentials string `json:"credentials"`
}

// box returns the cipher for sealed. Its key is derived from the secret of the service.
func (w *Webhooks) box() (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, w.Secret, nil, "push notifications", sha256.Size)
	if err != nil {
		return nil, err
	}

	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}

	return cipher.NewGCMWithRandomNonce(block)
}

// seal encrypts the token and the credentials of a config. The id of the webhook is authenticated too, so that they cannot be moved to another one.
func (w *Webhooks) seal(id uuid.UUID, p Push) ([]byte, error) {
	box, err := w.box()
	if err != nil {
		return nil, err
	}

	text, err := json.Marshal(sealed{Token: p.Token, Scheme: p.Scheme, Credentials: p.Credentials})
	if err != nil {
		return nil, err
	}

	return box.Seal(nil, nil, text, id[:]), nil //nolint:gosec // the cipher makes the nonce
}

// open returns the config of a webhook, decrypted. It fails if the secret of the service has changed since.
func (w *Webhooks) open(k Webhook) (Push, error) {
	box, err := w.box()
	if err != nil {
		return Push{}, err
	}

	text, err := box.Open(nil, nil, k.sealed, k.ID[:])
	if err != nil {
		return Push{}, fmt.Errorf("the secret of the service has changed: %w", err)
	}

	var s sealed
	if err := json.Unmarshal(text, &s); err != nil {
		return Push{}, err
	}

	return Push{ID: k.pushID, URL: k.URL, Token: s.Token, Scheme: s.Scheme, Credentials: s.Credentials}, nil
}
