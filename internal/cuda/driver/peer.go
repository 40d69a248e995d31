package driver

import "fmt"

// Connect lets the context's kernels read and write the device memory of another context. The error
// wraps [ErrNoPeer] if the devices have no such link. A device reaches its own memory.
func (c *Context) Connect(peer *Context) error {
	if peer.device.Index == c.device.Index {
		return nil
	}
	if err := c.do(fnDeviceCanAccessPeer, at(&c.out.i), c.device.handle, peer.device.handle); err != nil {
		return err
	}
	if c.out.i == 0 {
		return fmt.Errorf("%w: device %d, %s, does not reach device %d, %s; nvidia-smi topo -p2p rw shows which devices do", ErrNoPeer, c.device.Index, c.device.Name, peer.device.Index, peer.device.Name)
	}
	if c.lost != nil {
		return c.lost
	}
	if code := c.call(fnCtxEnablePeerAccess, peer.handle, 0); code != Success && code != PeerAlreadyEnabled {
		return c.failed(fnCtxEnablePeerAccess, code, fmt.Sprintf("device %d", peer.device.Index))
	}
	return nil
}
