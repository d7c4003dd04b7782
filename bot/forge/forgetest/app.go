package forgetest

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"playbook-bot/bot/forge"
)

// app is a GitHub App.
type app struct {
	id       int64
	slug     string
	key      *rsa.PublicKey
	bot      *account
	installs []*install
	lastID   int64
}

// install is an app in an account.
type install struct {
	id        int64
	owner     *account
	suspended bool
}

// in reports whether the app acts in an account.
func (a *app) in(owner *account) bool {
	return slices.ContainsFunc(a.installs, func(in *install) bool { return in.owner == owner && !in.suspended })
}

// AddApp makes an app, whose JWTs are checked by that key, and gives its id
// and its bot's account, "slug[bot]".
func (f *Forge) AddApp(slug string, key *rsa.PublicKey) (id int64, bot forge.Account) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := &app{id: int64(len(f.st.apps)) + 1000, slug: slug, key: key, bot: f.addAccount(slug+"[bot]", false, false)}
	a.bot.app = a
	f.st.apps = append(f.st.apps, a)
	return a.id, a.bot.neutral()
}

func (f *Forge) mustApp(slug string) *app {
	i := slices.IndexFunc(f.st.apps, func(a *app) bool { return a.slug == slug })
	if i < 0 {
		panic(fmt.Sprintf("forgetest: no app %q", slug))
	}
	return f.st.apps[i]
}

// Install installs an app in an account, for all its repositories, and gives
// the installation's id.
func (f *Forge) Install(slug, owner string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.mustApp(slug)
	a.lastID++
	in := &install{id: a.id*100 + a.lastID, owner: f.mustAccount(owner)}
	a.installs = append(a.installs, in)
	return in.id
}

// Uninstall takes an app out of an account; its tokens there end.
func (f *Forge) Uninstall(slug, owner string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, o := f.mustApp(slug), f.mustAccount(owner)
	a.installs = slices.DeleteFunc(a.installs, func(in *install) bool { return in.owner == o })
	f.endTokens(a, o)
}

// Suspend keeps an app from acting in an account; its tokens there end.
func (f *Forge) Suspend(slug, owner string, suspended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, o := f.mustApp(slug), f.mustAccount(owner)
	for _, in := range a.installs {
		if in.owner == o {
			in.suspended = suspended
		}
	}
	f.endTokens(a, o)
}

// EndTokens makes all tokens of an app's installations invalid before their
// time.
func (f *Forge) EndTokens(slug string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.endTokens(f.mustApp(slug), nil)
}

func (f *Forge) endTokens(a *app, owner *account) {
	for value, t := range f.st.tokens {
		if t.account == a.bot && (owner == nil || t.owner == owner) {
			delete(f.st.tokens, value)
		}
	}
}

// tokenLife is how long an installation's token is good for.
const tokenLife = time.Hour

// installToken makes a token of an installation's.
func (f *Forge) installToken(a *app, in *install) (value string, expires time.Time) {
	f.st.lastToken++
	value, expires = fmt.Sprintf("ghs_%036x", f.st.lastToken), f.clock().Add(tokenLife)
	f.st.tokens[value] = &token{account: a.bot, owner: in.owner, expires: expires,
		scopes: []string{"write:issue", "read:repository", "read:user", "read:organization"}}
	return value, expires
}

// appOf is the app that a JWT names, if its signature and its times are right:
// it must not be dated in the future nor live for more than ten minutes.
func (f *Forge) appOf(jwt string) *app {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		return nil
	}
	var header struct{ Alg string }
	var claims struct {
		Iss      string
		Iat, Exp int64
	}
	sig, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !decodePart(parts[0], &header) || !decodePart(parts[1], &claims) || header.Alg != "RS256" {
		return nil
	}
	now := f.now().Unix()
	if claims.Iat > now || claims.Exp <= now || claims.Exp > now+600 {
		return nil
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	for _, a := range f.st.apps {
		if claims.Iss == strconv.FormatInt(a.id, 10) && rsa.VerifyPKCS1v15(a.key, crypto.SHA256, sum[:], sig) == nil {
			return a
		}
	}
	return nil
}

func decodePart(part string, into any) bool {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	return err == nil && json.Unmarshal(raw, into) == nil
}
