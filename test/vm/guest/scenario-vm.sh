# The life of the package on one host, in an emulated machine: what takes the kernel's own WireGuard, real restarts and power cuts. A
# function a boot, of which each step becomes a test. Node is some ten times slower there: it is started where the package does so.

boot_1() {
  step 'a bare host is made ready' prepare
  step 'apt installs the package, and enables what does nothing yet' install
  step 'the control plane serves as its unit, as a user of its own' serve_control_plane
  step 'a join brings up an interface of the kernel, and enables the daemon' join_here
  step 'the daemon is ready in its sandbox' see_sandbox
  step 'the daemon applies in its sandbox that a second host joins, and they ping each other' join_far
  step 'the daemon applies a change of the network in its sandbox' change_network
  step 'names of peers and of a domain behind a route resolve, by the daemon in its sandbox' resolve_names
  step 'the doctor finds nothing wrong' consult_doctor
  step 'the control plane is stopped for good' stop_control_plane
  restart
}

boot_2() {
  step 'after a restart peers ping each other without the control plane' ping_after_restart
  step 'after a restart names resolve without the control plane' see_names
  step 'a service that waits for cpn-online.target has the address and the names' see_bound_service
  step 'nothing failed at the restart' see_no_failure
  step 'the control plane comes back' start_control_plane
  cut_during 'the power goes when the control plane has enrolled a join' join_third see_third_enrolled
}

boot_3() {
  step 'after a power cut the first network is up' ping_after_restart
  step 'the same key finishes a join that was enrolled' finish_third
  step 'an upgrade keeps the tunnel, and no packet is lost' upgrade
  step 'a removal leaves the tunnel up' remove
  step 'a purge leaves the host as it was' purge
}
