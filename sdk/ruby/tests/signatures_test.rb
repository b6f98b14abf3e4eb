# frozen_string_literal: true

require_relative "helper"

class SignaturesTest < Minitest::Test
  def test_public_methods_have_signatures
    output = IO.popen([Gem.ruby, File.join(__dir__, "signatures.rb")], err: %i[child out], &:read)
    skip "missing: the gem rbs (apt install libruby)" if $?.exitstatus == 77
    assert $?.success?, output
  end
end
