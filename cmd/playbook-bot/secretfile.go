package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"
)

// maxSecretFile bounds what is read from a secret's file, in bytes. Nothing a
// secret is made of comes near it; a device or a log named by mistake does.
const maxSecretFile = 64 << 10

// secretFile is a value kept in a file, read again when the file's size or
// time of change does, so that tokens and grants are replaced without a
// restart. A file that later vanishes, turns blank or turns invalid leaves
// the last good value in force, and warn is told once per change.
type secretFile struct {
	name, path string
	check      func(string) error
	warn       func(error)

	mu      sync.Mutex
	good    string
	modTime time.Time
	size    int64
	failed  string
}

// openSecret reads the file for the first time. name is the variable that
// named it. Errors say nothing of the content, nor of the path: a secret put
// where its file's name belongs would be shown by it.
func openSecret(name, path string, check func(string) error, warn func(error)) (*secretFile, error) {
	f := &secretFile{name: name, path: path, check: check, warn: warn}
	if err := f.read(); err != nil {
		return nil, err
	}
	return f, nil
}

// value gives the present value. It is safe for concurrent use, and costs one
// stat where nothing changed.
func (f *secretFile) value() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.path)
	if err == nil && info.ModTime().Equal(f.modTime) && info.Size() == f.size {
		return f.good
	}
	if err == nil {
		err = f.read()
	} else {
		err = reason(err)
	}
	switch {
	case err == nil:
		f.failed = ""
	case err.Error() != f.failed:
		f.failed = err.Error()
		f.warn(fmt.Errorf("%s %w; the value read before stays in force", f.name, err))
	}
	return f.good
}

// read takes the file's content in if it is good. Size and time are noted in
// any case, before reading: a write in between is seen the next time.
func (f *secretFile) read() error {
	file, err := os.Open(f.path)
	if err != nil {
		return reason(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return reason(err)
	}
	f.modTime, f.size = info.ModTime(), info.Size()
	b, err := io.ReadAll(io.LimitReader(file, maxSecretFile+1))
	if err != nil {
		return reason(err)
	}
	s := strings.TrimSpace(string(b))
	switch {
	case len(b) > maxSecretFile:
		return fmt.Errorf("names a file of more than %d bytes", maxSecretFile)
	case s == "":
		return errors.New("names a blank file")
	}
	if err := f.check(s); err != nil {
		return fmt.Errorf("names a file that %w", err)
	}
	f.good = s
	return nil
}

// reason leaves the path out of a file's error.
func reason(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("names a file that is not there")
	case errors.Is(err, fs.ErrPermission):
		return errors.New("names a file that may not be read by this user")
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("names a file that cannot be read: %w", p.Err)
	}
	return errors.New("names a file that cannot be read")
}
