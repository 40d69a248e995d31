package main

import (
	"errors"
	"fmt"
	"net"
)

// isUnreachable reports whether err says that no connection to a server was possible.
func isUnreachable(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// unreachable adds the way out to an error of `realizar COMMAND URL` that isUnreachable.
func unreachable(err error, command, url string) error {
	if !isUnreachable(err) {
		return err
	}
	return fmt.Errorf("no server at %s (%s); start one with realizar serve MODEL, or give the address of another: realizar %s URL", url, awayText(err), command)
}
