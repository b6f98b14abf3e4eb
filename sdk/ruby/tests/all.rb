# frozen_string_literal: true

# Warnings about the SDK are failures; other gems have theirs.
module OwnWarnings
  def warn(message, **)
    return super unless message.match?(/:\d+: warning: /)

    raise message if message.start_with?(File.expand_path("..", __dir__))
  end
end
Warning.extend(OwnWarnings)

Dir[File.join(__dir__, "*_test.rb")].sort.each { |file| require file }
